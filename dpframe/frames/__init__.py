"""Result frames (built, recorded, written and registered), and detection of the library of a frame."""
