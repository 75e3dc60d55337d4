"""Parts of a retrieval report that only tell what was there: rows, counts, warnings, provenance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from tripos import __version__
from tripos.columns.retrieval import RetrievalRows
from tripos.columns.slots import Tally
from tripos.contracts.config import Config, Options
from tripos.contracts.reports import Counts, Gate, Incomplete, Latency, Provenance, Rows
from tripos.errors import Findings
from tripos.files.judgments import JudgmentTable, Kind
from tripos.files.retrieval import split_name
from tripos.measures.intervals import quantile
from tripos.measures.retrieval import RETRIEVAL


def exploratory(options: Options, findings: Findings) -> list[str]:
    """Why the report cannot certify: what --lenient let pass."""
    if not options.lenient:
        return []
    let_pass = [f"{kind}: {n}" for kind, n in sorted(findings.let_pass.items())]
    return ["--lenient: " + (", ".join(let_pass) if let_pass else "nothing had to be let pass")]


def rows_of(table: JudgmentTable, columns: RetrievalRows) -> Rows:
    """Which judgments were scored, and which were not."""
    rows, by_kind = columns.rows, table.tally()
    reviewed = {kind: n for kind, n in by_kind.items() if kind.status == "reviewed"}
    calibration = sum(n for kind, n in reviewed.items() if kind.category == "calibration")
    return Rows(
        total=len(table),
        by_status=dict(sorted(_tally(by_kind).items())),
        by_category=rows.tally("category"),
        by_split=rows.tally("split"),
        scored=len(columns),
        positives=int(columns.positive.sum()),
        expected_empty=int((~columns.positive).sum()),
        calibration=calibration,
        other_split=sum(reviewed.values()) - calibration - len(columns),
        incomplete=tuple(
            Incomplete(query_id=rows.query_ids[i], because=columns.errors.get(i, "no row in the ranked results"))
            for i in np.flatnonzero(~columns.complete).tolist()
        ),
    )


def _tally(kinds: Mapping[Kind, int]) -> dict[str, int]:
    found = Counter[str]()
    for kind, n in kinds.items():
        found[kind.status] += n
    return found


def counts_of(tally: Tally, findings: Findings) -> Counts:
    """What was done to the ranked results, counted."""
    let_pass = findings.let_pass
    return Counts(
        result_rows=tally.result_rows,
        results=tally.results,
        without_judgment=tally.without_judgment,
        below_min_score=tally.below_min_score,
        beyond_limit=tally.beyond_limit,
        duplicates=let_pass.get("duplicates", 0),
        reordered=let_pass.get("reordered", 0),
        unknown_fragments=tally.unknown_fragments,
        lenient=dict(sorted(let_pass.items())),
    )


def warnings_of(findings: Findings, completeness: str, gates: Sequence[Gate]) -> list[str]:
    """What a reader of the report should know; file names and lines stay on stderr."""
    kinds = Counter(f.kind for f in findings.warnings)
    told = [f"{kind.replace('_', ' ')}: {n}" for kind, n in sorted(kinds.items())]
    if completeness == "known_item":
        marked = [g.name for g in gates if g.asked and _needs_completeness(g.name)]
        told += [f"gate on {name}: judgments are known_item, so an unlisted source may be right too" for name in marked]
    return told


def _needs_completeness(name: str) -> bool:
    base = name.partition("@")[0]
    return f"{base}@k" in RETRIEVAL and RETRIEVAL[f"{base}@k"].needs_completeness


def provenance_of(columns: RetrievalRows, config: Config, paths: Mapping[str, str]) -> Provenance:
    """What no digest covers: the tool, the inputs' paths and the search's own latencies."""
    given = np.sort(columns.latency_ms[~np.isnan(columns.latency_ms)]).tolist()
    files = [("fragments", *split_name(path)[::-1]) for path in config.fragments]
    files += [("judgments", config.judgments.retrieval or "", None), ("ranked_results", config.ranked_results or "", None)]
    files += [("timings", config.timings, None)] if config.timings else []
    return Provenance.model_validate(
        {
            "tool": f"tripos {__version__}",
            "inputs": [
                {"role": role, "path": paths.get(path, path), "collection": collection} for role, path, collection in files
            ],
            "latency_ms": Latency(n=len(given), **{f"p{q}": quantile(given, q / 100) for q in (50, 95, 99)}),
        }
    )
