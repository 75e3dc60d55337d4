"""What all contracts share: strict, frozen models and the types of their fields."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict

T = TypeVar("T")


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("holds a NUL character, which no store, shell or TREC file can carry: remove it")
    return text


Id = Annotated[str, Field(min_length=1), AfterValidator(_no_nul)]
"""A name compared byte for byte: never trimmed, case-folded or turned into a number."""

Listed = Annotated[tuple[T, ...], Strict(False)]
"""A JSON list, kept as a tuple."""

MAX_WHOLE = 2**53 - 1
"""The largest whole number that every JSON reader keeps exactly."""


def _exact(number: int) -> int:
    if abs(number) > MAX_WHOLE:
        raise ValueError(f"is {number}: beyond 2^53, which JSON numbers do not keep exactly; write it as a string")
    return number


Whole = Annotated[int, AfterValidator(_exact)]
"""A whole number that canonical JSON can carry."""


def _exact_scalar(value: str | bool | float | None) -> str | bool | int | float | None:
    return _exact(value) if type(value) is int else value


Scalar = Annotated[str | bool | int | float | None, AfterValidator(_exact_scalar)]
"""A value that filters can compare."""

Grade = Annotated[float, Field(gt=0, le=100)]
"""A relevance grade; bounded so that 2^grade − 1 stays an ordinary number."""

PositiveInt = Annotated[int, Field(ge=1, le=1_000_000_000)]
NonNegative = Annotated[float, Field(ge=0)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Contract(BaseModel):
    """A strict, frozen row: unknown fields, wrong types, NaN and Infinity are errors."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class RowProblem(NamedTuple):
    """One broken rule between the fields of a row."""

    kind: str
    field: str
    message: str


class RowProblems(ValueError):  # noqa: N818 - carries several problems, read by the row reader
    """All the broken rules between the fields of one row, so that none hides another."""

    def __init__(self, problems: list[RowProblem]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{p.field}: {p.message}" for p in problems))


def plain_json(value: Any, path: str = "") -> Any:
    """`value`, where it is JSON that has a canonical form; else ValueError saying where it is not, and why."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return _exact(value)
        case float() if math.isfinite(value):
            return value
        case list():
            return [plain_json(inner, f"{path}[{n}]") for n, inner in enumerate(value)]
        case dict() if all(isinstance(key, str) for key in value):
            return {key: plain_json(inner, f"{path}.{key}") for key, inner in value.items()}
    where = f"{path.lstrip('.')} " if path else ""
    raise ValueError(f"{where}is {value}: strings, finite numbers, true, false, null, lists and mappings only")


Json = Annotated[Any, AfterValidator(plain_json)]
"""Any JSON that has a canonical form."""


def shown(value: Any) -> str:
    """A value as one would type it in JSON, cut to fit an error line."""
    import orjson

    from tripos.errors import quoted

    try:
        return quoted(orjson.dumps(value).decode())
    except (TypeError, orjson.JSONEncodeError):
        return quoted(str(value))
