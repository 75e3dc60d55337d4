"""What the tests of the command share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A tiny valid world in a folder of its own."""
    return World(tmp_path)
