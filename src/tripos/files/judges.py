"""The list of approved judges, from YAML or TOML."""

from __future__ import annotations

from tripos.contracts.judges import ApprovedJudge, ApprovedJudges
from tripos.files.configs import read_model


def load_judges(path: str) -> tuple[ApprovedJudge, ...]:
    """The approved judges; raises ConfigError with every fault and its line."""
    return read_model(path, ApprovedJudges).judges
