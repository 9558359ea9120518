"""Audits, fuzzing, seeded bugs and drills: they look for what is wrong; ``python -m assurance.audit`` and so on."""
