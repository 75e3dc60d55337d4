"""Typer commands: parse, call, print, exit code."""
