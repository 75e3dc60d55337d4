"""Failed queries of chosen runs, as a query over the store."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tripos.errors import UsageError, quoted, suggest
from tripos.store.reading import Layer, Store
from tripos.store.sandbox import Query

_SQL = """
WITH series AS (
    SELECT
        run_id, name, time, execution_id,
        row_number() OVER (PARTITION BY layer, name ORDER BY time DESC, execution_id DESC) AS back
    FROM executions
),
chosen AS (SELECT run_id, name, max(time) AS time FROM series WHERE {which} GROUP BY run_id, name)
SELECT chosen.time, run_id, chosen.name, layer, query_id, category, reasons, missed_sources, query, error
FROM misses JOIN chosen USING (run_id)
WHERE {filters}
ORDER BY chosen.time DESC, run_id, layer, query_id
"""
_AGO = re.compile(r"([1-9][0-9]{0,4})([dhw])")
_UNITS = {"d": "days", "h": "hours", "w": "weeks"}


@dataclass(frozen=True, slots=True)
class Filters:
    """Which misses are asked for; None: all.

    run: A run by any of its names; default: the latest execution of each system in each layer.
    since: A day or time in UTC (2026-11-30, 2026-11-30T18:00), or how long ago (7d, 12h, 2w).
    """

    layer: Layer | None = None
    category: str | None = None
    reason: str | None = None
    run: str | None = None
    since: str | None = None


def misses_of(folder: str, asked: Filters, now: datetime | None = None) -> Query:
    """The query for the misses that are asked for.

    Args:
        folder: The store.
        asked: The filters.
        now: The moment that `since` counts from; default: this one.

    Raises:
        UsageError: A run, a reason or a time that is none.
    """
    which, parameters = "back = 1", dict[str, Any]()
    if asked.run is not None:
        which, parameters["run"] = "run_id = $run", Store(folder).resolve(asked.run, asked.layer)
    elif asked.since is not None:
        which, parameters["since"] = "time >= $since", _moment(asked.since, now or datetime.now(UTC))
    if asked.reason is not None:
        _check_reason(asked.reason)
    wanted = {
        "layer": ("layer = $layer", asked.layer),
        "category": ("category = $category", asked.category),
        "reason": ("list_contains(reasons, $reason)", asked.reason),
    }
    filters = [sql for sql, value in wanted.values() if value is not None]
    parameters |= {name: value for name, (_, value) in wanted.items() if value is not None}
    return Query(folder, _SQL.format(which=which, filters=" AND ".join(filters) or "true"), parameters)


def _moment(text: str, now: datetime) -> datetime:
    """A time in UTC, without a zone."""
    if found := _AGO.fullmatch(text):
        moment = now - timedelta(**{_UNITS[found[2]]: int(found[1])})
    else:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise UsageError(f'--since "{quoted(text)}": a day (2026-11-30), a time, or 7d, 12h, 2w are expected') from None
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return moment.astimezone(UTC).replace(tzinfo=None)


def _check_reason(reason: str) -> None:
    from typing import get_args

    from tripos.contracts.corpus import CorpusMissReason
    from tripos.contracts.generation import PASSING, STATUSES
    from tripos.contracts.retrieval import MissReason

    known = {*get_args(MissReason), *(STATUSES.keys() - set(PASSING)), *get_args(CorpusMissReason)}
    if reason not in known:
        raise UsageError(f'--reason "{quoted(reason)}" is none{suggest(reason, known)}: {", ".join(sorted(known))}')
