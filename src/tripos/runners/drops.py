"""Gates of an evaluation on what it may lose against a baseline: from the figures of both reports, over the same rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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
class Bar:
    """How far one curve may fall below the baseline's figure at k; where there is no such figure, the status that follows."""

    curve: str
    k: int
    most: float
    base: float | None
    otherwise: tuple[str, str] = ("vacuous", "the baseline has no figure there")

    @property
    def name(self) -> str:
        """As gates are named."""
        return f"max-drop {self.curve.removesuffix('k')}{self.k}"


@dataclass(frozen=True, slots=True)
class Against:
    """A baseline by its run id, and the bars it sets.

    `given` is the baseline as it was named; `judgments_digest` and `split` say which rows scored it, None where a report's own
    gates are decided again.
    """

    run_id: str
    bars: tuple[Bar, ...]
    judgments_digest: str | None = None
    split: object = None
    given: str = "the baseline"

    def refuse(self, judgments_digest: str | None, options: Options, taken: Collection[str]) -> None:
        """Raise NotComparable where the baseline was scored by other rows, UsageError for a curve this run does not take."""
        if self.judgments_digest not in (None, judgments_digest):
            text = "was scored by other judgments: tripos compare can pair the rows that both judge alike, or rescore both"
            raise NotComparable(f"{self.given} {text}")
        if self.split not in (None, options.split):
            raise NotComparable(f"{self.given} scored split {self.split}, this run split {options.split}: not the same rows")
        if missing := [bar.curve for bar in self.bars if bar.curve not in taken]:
            raise UsageError(f"an integration check has no {missing[0]}: --scope full, or no gate on it")

    def gates(self, figures: Figures) -> list[DropGate]:
        """The gates: the baseline's figure less this run's worst one."""
        return [self._gate(bar, _curve(figures, bar)) for bar in self.bars]

    def _gate(self, bar: Bar, own: Curve) -> DropGate:
        if bar.base is None:
            return self._made(bar, *bar.otherwise)
        now = own.worst[bar.k - 1]
        if now is None:
            return self._made(bar, "vacuous", f"undefined: {own.undefined}")
        drop = round12(bar.base - now)
        text = f"{moved(drop)}: worst {now:.4g}, baseline {bar.base:.4g}"
        return self._made(bar, "passed" if drop <= bar.most + SLACK else "failed", text, drop)

    def _made(self, bar: Bar, status: str, because: str, drop: float | None = None) -> DropGate:
        gate: dict[str, Any] = {"name": bar.name, "bound": "max", "threshold": bar.most, "value": drop, "status": status}
        return DropGate.model_validate(
            {**gate, "because": because, "asked": True, "baseline": self.run_id, "baseline_value": bar.base}
        )

    def warnings(self, figures: Figures) -> Iterator[str]:
        """What to say of gates that so few rows can hardly prove."""
        for bar in self.bars:
            own = _curve(figures, bar)
            n = own.n + own.incomplete
            if n and not can_ever_show(n, bar.most):
                least = f"{FLIPS_NEEDED} rows lost and none won are the least evidence there is"
                yield f"gate {bar.name}: of {n} rows, a drop of {bar.most:g} is {n * bar.most:.2g}; {least}"


def _curve(figures: Figures, bar: Bar) -> Curve:
    curve = figures[bar.curve]
    assert isinstance(curve, Curve)
    return curve


def held_against(report: RetrievalReport, most: Mapping[str, float], k: int, given: str = "the baseline") -> Against:
    """A baseline with its bars.

    Args:
        report: The baseline's report.
        most: How far each curve may fall: {"recall@k": .02}.
        k: The cutoff, this run's top K.
        given: The baseline as it was named.
    """
    bars = tuple(_bar(report, curve, k, limit) for curve, limit in most.items())
    return Against(report.run_id, bars, report.judgments_digest, report.reading.get("split", "all"), given)


def _bar(report: RetrievalReport, name: str, k: int, most: float) -> Bar:
    curve = report.measures.get(name)
    if not isinstance(curve, Curve) or k > len(curve.value):
        return Bar(name, k, most, None, ("vacuous", f"the baseline has no figure at {k}"))
    if curve.incomplete:
        text = f"the baseline has no result for {curve.incomplete} rows: tripos compare pairs the others"
        return Bar(name, k, most, None, ("inconclusive", text))
    return Bar(name, k, most, curve.value[k - 1], ("vacuous", f"undefined in the baseline: {curve.undefined}"))


def held_again(report: RetrievalReport) -> Against | None:
    """The baseline of a report's own gates, as far as they state it; None where it has none.

    What the baseline's figure was, the gates say; that it was so, only its own report can show.
    """
    gates = [gate for gate in report.gates if isinstance(gate, DropGate)]
    if not gates:
        return None
    bars = []
    for gate in gates:
        base, _, k = gate.name.removeprefix("max-drop ").partition("@")
        bars.append(Bar(f"{base}@k", int(k), gate.threshold, gate.baseline_value, (gate.status, gate.because)))
    return Against(gates[0].baseline, tuple(bars))
