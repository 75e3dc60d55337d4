"""Typer commands: parse, call, print, exit code."""

import os

os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looking for them takes 20 ms of every command
