"""Gates of an evaluation on what it may lose against a baseline: from the figures of both reports, over the same rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from tripos.contracts.config import Options
from tripos.contracts.reports import Aggregate, Curve, DropGate, RetrievalReport
from tripos.errors import NotComparable, UsageError
from tripos.fingerprint import round12
from tripos.measures.drops import SLACK, moved
from tripos.measures.power import FLIPS_NEEDED, can_ever_show

DROPS = {"recall": "recall@k", "mrr": "rr@k", "ndcg": "ndcg@k"}
"""The curves that eval-retrieval gates on, by the name of the flag; each is read at top K."""

Figures = Mapping[str, Aggregate | Curve]


@dataclass(frozen=True, slots=True)
class Against:
    """A baseline, and how far each curve may drop below it: {"recall@k": .02}. `given` is the baseline as it was named."""

    report: RetrievalReport
    most: Mapping[str, float]
    given: str = "the baseline"

    def refuse(self, judgments_digest: str | None, options: Options, taken: Collection[str]) -> None:
        """Raise NotComparable where the baseline was scored by other rows, UsageError for a curve this run does not take."""
        if self.report.judgments_digest != judgments_digest:
            text = "was scored by other judgments: tripos compare can pair the rows that both judge alike, or rescore both"
            raise NotComparable(f"{self.given} {text}")
        if (theirs := self.report.reading.get("split", "all")) != options.split:
            raise NotComparable(f"{self.given} scored split {theirs}, this run split {options.split}: not the same rows")
        if missing := [name for name in self.most if name not in taken]:
            raise UsageError(f"an integration check has no {missing[0]}: --scope full, or no gate on it")

    def gates(self, figures: Figures, top_k: int) -> list[DropGate]:
        """The gates, read at top K: the baseline's figure less this run's worst one."""
        return [self._gate(name, most, figures, top_k) for name, most in self.most.items()]

    def _gate(self, name: str, most: float, figures: Figures, k: int) -> DropGate:
        theirs, ours = self.report.measures.get(name), figures[name]
        assert isinstance(ours, Curve)
        label = f"max-drop {name.removesuffix('k')}{k}"
        if not isinstance(theirs, Curve) or k > len(theirs.value):
            return self._made(label, most, None, "vacuous", f"the baseline has no figure at {k}")
        if theirs.incomplete:
            text = f"the baseline has no result for {theirs.incomplete} rows: tripos compare pairs the others"
            return self._made(label, most, None, "inconclusive", text)
        before, now = theirs.value[k - 1], ours.worst[k - 1]
        if before is None or now is None:
            return self._made(label, most, None, "vacuous", f"undefined: {theirs.undefined or ours.undefined}")
        drop = round12(before - now)
        text = f"{moved(drop)}: worst {now:.4g}, baseline {before:.4g}"
        return self._made(label, most, drop, "passed" if drop <= most + SLACK else "failed", text)

    def _made(self, name: str, most: float, drop: float | None, status: str, because: str) -> DropGate:
        gate = {"name": name, "bound": "max", "threshold": most, "value": drop, "status": status, "because": because}
        return DropGate.model_validate({**gate, "asked": True, "baseline": self.report.run_id})

    def warnings(self, figures: Figures) -> Iterator[str]:
        """What to say of gates that so few rows can hardly prove."""
        for name, most in self.most.items():
            curve = figures[name]
            n = curve.n + curve.incomplete
            if n and not can_ever_show(n, most):
                least = f"{FLIPS_NEEDED} rows lost and none won are the least evidence there is"
                yield f"gate max-drop {name.removesuffix('@k')}: of {n} rows, a drop of {most:g} is {n * most:.2g}; {least}"
