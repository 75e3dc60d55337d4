"""Formats of neighbouring tools, one file a format."""
