"""Tables that are read in pieces: larger than memory, or on other machines."""
