"""Streams: series over declared periods that are charged once, from the request to the charts."""
