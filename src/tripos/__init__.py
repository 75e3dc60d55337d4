"""Tripos: three papers for a retrieval-augmented system, sat under one configuration."""

__version__ = "0.1.0"
