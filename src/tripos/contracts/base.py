"""What all contracts share: strict, frozen models and the types of their fields."""

from __future__ import annotations

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

Scalar = str | bool | int | float | None
"""A value that filters can compare."""

Grade = Annotated[float, Field(gt=0, le=100)]
"""A relevance grade; bounded so that 2^grade − 1 stays an ordinary number."""

PositiveInt = Annotated[int, Field(ge=1)]
NonNegative = Annotated[float, Field(ge=0)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Contract(BaseModel):
    """A strict, frozen row: unknown fields, wrong types, NaN and Infinity are errors."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


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


def shown(value: Any) -> str:
    """A value as one would type it in JSON, cut to fit an error line."""
    import orjson

    from tripos.errors import quoted

    try:
        return quoted(orjson.dumps(value).decode())
    except (TypeError, orjson.JSONEncodeError):
        return quoted(str(value))
