"""Fields of golden files that Tripos names or fills otherwise; each with the jq filter that brings them over."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import get_args

from tripos.contracts.base import shown
from tripos.contracts.retrieval import RetrievalJudgment, ReviewStatus
from tripos.curate.ailments import INVERTED, Ailment, rows_where
from tripos.curate.recognise import Form, Look
from tripos.curate.repair import field
from tripos.errors import quoted, suggest

_STATUSES = get_args(ReviewStatus)
_APPROVED = ("approved", "done", "final", "accepted", "verified", "ok")
_STATUS_STEP = (
    f". as $said | if {json.dumps(_STATUSES)} | any(. == $said) then . "
    f'elif {json.dumps(["true", *_APPROVED])} | any(. == $said) then "reviewed" else "draft" end'
)
DEFAULTS = {
    "should_match": "((.expected_sources // []) | length > 0)",
    "category": '"imported"',
    "review_status": '"draft"',
}
"""What a field comes out as where a golden file has none, as jq."""

_YES, _NO = ("true", "yes", "1"), ("false", "no", "0")


def foreign_booleans(look: Look) -> Iterator[Ailment]:
    """should_match that is neither true nor false."""
    key = look.roles.get("should_match", "")
    found = rows_where(look, key, lambda value: not isinstance(value, bool))
    if not found:
        return
    values = {str(record.value[key]).lower() for record in found}
    step = ""
    if values <= {*_YES, *_NO}:
        step = f"{field(key)} |= ((tostring | ascii_downcase) as $said | {json.dumps(_YES)} | any(. == $said))"
    third = "" if step else "; a third value has no place here: decide each row"
    text = f"{shown(found[0].value[key])} in {len(found)} of {len(look.records)} rows: true or false is expected{third}"
    yield Ailment("foreign_boolean", key, text, found[0].line, step)


def foreign_statuses(look: Look) -> Iterator[Ailment]:
    """review_status with words of another project."""
    key = look.roles.get("review_status", "")
    found = rows_where(look, key, lambda value: value not in _STATUSES)
    if found:
        got, known = shown(found[0].value[key]), ", ".join(_STATUSES)
        text = f"{got} in {len(found)} of {len(look.records)} rows: one of {known} is expected"
        step = f"{field(key)} |= (tostring | ascii_downcase | {_STATUS_STEP})"
        yield Ailment("foreign_status", key, text, found[0].line, step)


def foreign_names(look: Look) -> Iterator[Ailment]:
    """Fields that Tripos names otherwise, and those it needs beside them."""
    if look.form is not Form.GOLDENS:
        return
    renamed = {role: key for role, key in look.roles.items() if role != key}
    if renamed:
        pairs = ", ".join(f"{key} → {role}" for role, key in renamed.items())
        yield Ailment("foreign_names", "", f"other names than those of Tripos: {pairs}", step=_renaming(renamed))
    lacking = [name for name in DEFAULTS if name not in look.roles]
    if lacking:
        text = "missing; rows come out as draft, which is not scored: once people have looked at them, say reviewed"
        yield Ailment("missing_fields", ", ".join(lacking), text, step=defaults(lacking))


def _renaming(renamed: dict[str, str]) -> str:
    values = {role: f"({field(key)} | not)" if key in INVERTED else field(key) for role, key in renamed.items()}
    gone = ", ".join(field(key) for key in renamed.values())
    return f"{{{', '.join(f'{role}: {value}' for role, value in values.items())}}} + del({gone})"


def defaults(lacking: Sequence[str]) -> str:
    """The filter that fills in fields where a row lacks them."""
    return f"{{{', '.join(f'{name}: {DEFAULTS[name]}' for name in lacking)}}} + ."


def unknown_fields(look: Look) -> Iterator[Ailment]:
    """Fields that the contract lacks."""
    known = {*RetrievalJudgment.model_fields, *look.roles.values()}
    names_here = dict.fromkeys(name for record in look.records for name in record.value if name not in known)
    extra = [
        name for name in names_here if not suggest(name, RetrievalJudgment.model_fields)
    ]  # a slip is no field of one's own
    if extra:
        names = ", ".join(map(quoted, extra[:8])) + (" …" if len(extra) > 8 else "")
        text = f"unknown fields {names}: your own fields go under metadata (or --allow-extra)"
        yield Ailment("unknown_fields", "", text, step=_to_metadata(extra))


def _to_metadata(names: Sequence[str]) -> str:
    quoted_names = json.dumps(names, ensure_ascii=False)
    own = f"with_entries(select(.key as $name | {quoted_names} | any(. == $name)))"
    return f".metadata = ((.metadata // {{}}) + {own}) | del({', '.join(map(field, names))})"
