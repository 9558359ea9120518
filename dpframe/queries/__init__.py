"""What is asked: measures over public cells."""
