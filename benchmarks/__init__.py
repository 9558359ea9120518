"""Programs that measure speed and error: ``python -m benchmarks.speed`` and so on."""
