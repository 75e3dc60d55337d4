"""What each file means: frozen, strict models; no I/O, no numpy, no clock."""
