"""Checks over a full run, by recomputation: what holds becomes a certificate."""
