"""A query planned from public facts alone: what will be measured, with what noise, at what cost."""
