"""The steps of a release, in this order: plan, charge, measure, add noise, denoise, build. No charge is refunded."""
