"""Whether a judge is approved on a day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from tripos.contracts.generation_report import Approval
from tripos.contracts.judges import ApprovedJudge


def approval(name: str | None, judges: Sequence[ApprovedJudge] | None, today: date) -> Approval:
    """What the list says of a judge; `not_checked` without a list or a judge."""
    if judges is None or name is None:
        return "not_checked"
    own = [judge for judge in judges if judge.name == name]
    if any(judge.from_ <= today <= judge.until for judge in own):
        return "approved"
    if not own:
        return "not_listed"
    return "expired" if all(judge.until < today for judge in own) else "not_yet_valid"
