"""Every check, in the order in which they are told."""

from __future__ import annotations

from tripos.certify import artifacts, committed, fingerprints, gating, models, population, recomputation
from tripos.certify.record import CHECKS, Check

MODULES = (artifacts, recomputation, fingerprints, population, models, gating, committed)
"""A module registers its own checks; this is the order of modules, and theirs within them."""


def every_check() -> list[Check]:
    """The checks, module by module."""
    return [check for module in MODULES for check in CHECKS.values() if check.examine.__module__ == module.__name__]
