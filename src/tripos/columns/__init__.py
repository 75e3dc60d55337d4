"""Rows, aligned into numpy arrays sorted by query id."""
