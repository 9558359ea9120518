"""Streams: a series over declared periods that is charged once, from its question to its charts."""
