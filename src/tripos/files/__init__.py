"""How bytes become contract rows and back; the only layer that opens files of the user."""
