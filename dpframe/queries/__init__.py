"""The questions: statistics over public cells."""
