"""Looking after golden sets."""
