"""approved_judges.yaml: the judges whose faithfulness scores a certificate may rest on."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from tripos.contracts.base import Contract, Digest, Id, Listed, RowProblem, RowProblems, Scalar, shown


def _day(value: Any) -> Any:
    """A YAML date, or its text; a time of day would make the day depend on where one stands."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f"is {shown(str(value))}: a day is expected, e.g. 2026-10-31") from None


Day = Annotated[date, BeforeValidator(_day)]


class ApprovedJudge(Contract):
    """One judge, who approved it, and for how long; both days are within."""

    name: Id = Field(description="name@revision, as --judge-model gives it.")
    by: Id = Field(description="Who approved it.")
    from_: Day = Field(alias="from", description="The first day.")
    until: Day = Field(description="The last day.")
    kind: Literal["external", "tripos"] = Field(description="external: scores given by name alone; tripos: by tripos judge.")
    prompt_digest: Digest | None = Field(None, description="Of the prompt; for kind tripos.")
    parameters: dict[Id, Scalar] = Field({}, description="Decoding parameters; for kind tripos.")
    calibration: str | None = Field(None, description="What the approval rests on.")

    @model_validator(mode="after")
    def _in_order(self) -> ApprovedJudge:
        if self.until < self.from_:
            text = f"{self.until} is before from, {self.from_}: no day is within"
            raise RowProblems([RowProblem("approval", "until", text)])
        return self


class ApprovedJudges(Contract):
    """The whole file."""

    judges: Listed[ApprovedJudge]
