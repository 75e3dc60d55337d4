"""What doctor hands back: files as recognised, what is wrong, and the command that would accept or mend each."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tripos.contracts.base import Contract, Listed
from tripos.errors import Finding, Place

Severity = Literal["error", "warning"]


class Diagnosis(Contract):
    """One kind of fault in one file, or between two."""

    severity: Severity = Field(description="error: some command of Tripos would refuse the file for it.")
    kind: str
    file: str
    line: int = Field(description="First physical line that has it; 0 means the whole file, or a line that cannot be told.")
    field: str
    message: str
    fix: str = Field(description='A shell line that accepts or mends it; "" where only a person can.')

    def __str__(self) -> str:
        return str(Finding(self.kind, self.message, Place(self.file, self.line), self.field, self.severity))


def made(
    file: str, kind: str, field: str, message: str, *, line: int = 0, fix: str = "", severity: Severity = "error"
) -> Diagnosis:
    """A diagnosis, said shortly."""
    return Diagnosis(severity=severity, kind=kind, file=file, line=line, field=field, message=message, fix=fix)


class FileSeen(Contract):
    """One file as recognised by its content."""

    path: str
    form: str
    container: str
    rows: int


class DoctorReport(Contract):
    """What doctor found."""

    contract: Literal["tripos/doctor-report@1"] = "tripos/doctor-report@1"
    files: Listed[FileSeen]
    diagnoses: Listed[Diagnosis]
    next: Listed[str] = Field(description="Commands to run next, with these files.")

    @property
    def errors(self) -> int:
        """How many kinds of fault would be refused."""
        return sum(d.severity == "error" for d in self.diagnoses)
