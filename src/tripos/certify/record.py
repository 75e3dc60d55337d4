"""One record a check: its id, the sentence that it proves, and the function that tries to refute it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tripos.contracts.certificate import Status
from tripos.contracts.config import LayerName
from tripos.errors import ExitCode, InputError, TriposError

if TYPE_CHECKING:
    from tripos.certify.dossier import Dossier

MAX_TOLD = 20
"""Differences of one check that are told; the rest are counted."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one check came to.

    `exit_code` is 0 where it stands in the way of nothing. `is_own`: the fault is this check's to tell, and not the
    consequence of another's.
    """

    status: Status
    told: str
    differences: tuple[str, ...] = ()
    in_all: int = 0
    fix: str | None = None
    exit_code: int = 0
    is_own: bool = True


class CannotTell(Exception):  # noqa: N818 - what the dossier says where something to check is not there
    """A check cannot be evaluated; `is_own` where it is the one that names the fault."""

    def __init__(self, why: str, exit_code: int = ExitCode.FAILED, fix: str | None = None, *, is_own: bool = False) -> None:
        self.exit_code, self.fix, self.is_own = exit_code, fix, is_own
        super().__init__(why)


@dataclass(frozen=True, slots=True)
class Check:
    """A check: function and exit code where it fails."""

    id: str
    sentence: str
    exit_code: ExitCode
    examine: Callable[[Dossier], Outcome]

    def run(self, dossier: Dossier) -> Outcome:
        """Its outcome; what cannot be told is an error, never a pass."""
        try:
            found = self.examine(dossier)
        except CannotTell as error:
            return Outcome("error", str(error), exit_code=error.exit_code, fix=error.fix, is_own=error.is_own)
        if found.status != "failed":
            return found
        return Outcome("failed", found.told, found.differences, found.in_all, found.fix, found.exit_code or self.exit_code)


CHECKS: dict[str, Check] = {}
"""Every check by id, in the order in which they are told."""


def check(
    name: str, sentence: str, exit_code: ExitCode = ExitCode.FAILED
) -> Callable[[Callable[[Dossier], Outcome]], Callable[[Dossier], Outcome]]:
    """Register a check. `exit_code` is that of its failure."""

    def register(examine: Callable[[Dossier], Outcome]) -> Callable[[Dossier], Outcome]:
        CHECKS[name] = Check(name, sentence, exit_code, examine)
        return examine

    return register


def passed(told: str) -> Outcome:
    """The sentence holds."""
    return Outcome("passed", told)


def warned(told: str) -> Outcome:
    """Nothing speaks against it, and not all could be shown: said on the certificate."""
    return Outcome("warned", told)


def not_applicable(told: str) -> Outcome:
    """There is nothing that it could be true or false of."""
    return Outcome("not_applicable", told)


def failed(told: str, differences: Iterable[str] = (), fix: str | None = None, exit_code: int = 0) -> Outcome:
    """The sentence does not hold, and where."""
    every = list(differences)
    return Outcome("failed", told, tuple(every[:MAX_TOLD]), len(every), fix, exit_code)


def by_layer(
    dossier: Dossier, differing: Callable[[LayerName], Iterable[str]], good: str, bad: str, fix: str | None = None
) -> Outcome:
    """One check over every demanded layer: failed where some layer differs, an error where a layer cannot be told of."""
    differences: list[str] = []
    untold: list[CannotTell] = []
    for layer in dossier.layers:
        try:
            differences += differing(layer)
        except CannotTell as error:
            untold.append(error)
    if differences:
        return failed(bad, differences, fix)
    if untold:
        raise untold[0]
    return passed(good)


def lines_of(fault: TriposError) -> Iterator[str]:
    """A fault as lines, its place first."""
    yield from (str(finding) for finding in fault.findings) if isinstance(fault, InputError) else str(fault).splitlines()
