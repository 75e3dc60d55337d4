"""What was searched in vain, and what searching took."""

from __future__ import annotations

import numpy as np

from tripos.columns.corpus import CorpusColumns
from tripos.columns.retrieval import Floats
from tripos.contracts.corpus_report import OverFanOut, OverFanOutCost
from tripos.contracts.reports import Latency
from tripos.fingerprint import round12
from tripos.measures.intervals import quantile


def over_fan_out(columns: CorpusColumns) -> OverFanOut:
    """Searches of collections that a row expects nothing of, expected-none rows among them."""
    searched = columns.fans.k > 0
    in_vain = searched & ~columns.fans.expected
    return OverFanOut(
        searches=int(searched.sum()), in_vain=int(in_vain.sum()), rows=len(np.unique(columns.fans.query[in_vain]))
    )


def over_fan_out_cost(columns: CorpusColumns) -> OverFanOutCost:
    """What searches in vain took, where fan-outs are timed."""
    fans = columns.fans
    timed = (fans.k > 0) & ~np.isnan(fans.latency_ms)
    vain = timed & ~fans.expected
    slowest: dict[int, tuple[float, bool]] = {}
    for query, latency, wasted in zip(fans.query[timed], fans.latency_ms[timed], vain[timed], strict=True):
        slowest[query] = max(slowest.get(query, (-1.0, False)), (float(latency), bool(wasted)))
    return OverFanOutCost(
        timed=int(timed.sum()),
        latency_ms=round12(float(fans.latency_ms[timed].sum())) if timed.any() else None,
        in_vain_ms=round12(float(fans.latency_ms[vain].sum())) if timed.any() else None,
        slowest_in_vain=sum(wasted for _, wasted in slowest.values()),
    )


def latency(values: Floats) -> Latency:
    """Quantiles of the latencies given; NaN where none is."""
    given = np.sort(values[~np.isnan(values)]).tolist()
    return Latency(n=len(given), **{f"p{q}": quantile(given, q / 100) for q in (50, 95, 99)})


def fan_out_latency(columns: CorpusColumns) -> dict[str, Latency]:
    """The same by collection."""
    fans = columns.fans
    return {name: latency(fans.latency_ms[fans.collection == n]) for n, name in enumerate(columns.collections)}
