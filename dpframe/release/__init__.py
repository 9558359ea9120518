"""The path of a release: plan, charge, measure, add noise, denoise, build. In this order, and nothing refunds."""
