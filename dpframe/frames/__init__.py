"""Results as frames: built, marked with their record, written and registered; and which library a frame is of."""
