"""FeB4RAG: 790 requests over 16 collections, three routers; every figure equals one computed by SQL from flat tables.

The lists of each collection are rebuilt from the file of graded results (RM): it holds 16 blocks, one a collection, each
with ten lines a request. The order of the blocks was found by scoring every block against the file of graded collections
(RS); each agrees in all 790 requests with one collection, and with no other.

Two decisions. *Relevant* is grade 2 and above: at grade 1 half of the requests find something in 13 of the 16 collections,
so that routing would hardly be examined. Requests whose best grade is 1 are left out, since neither answer would be fair to
them; the one request without any graded result expects none. *The same document in two collections* (7,879 pairs, mostly
fever and climate-fever) is a source of each, under an id that begins with the collection; where the two carry other grades
(6 pairs) the text is the same, so the higher grade counts for both.
"""

from __future__ import annotations

import gzip
import tempfile
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Row
from tests.corpus_worlds import CorpusWorld, collection, corpus_config, own, value
from tripos.contracts.config import Options
from tripos.contracts.corpus_report import CorpusReport
from tripos.runners.corpus import evaluate

duckdb = pytest.importorskip("duckdb")
DATA = Path(__file__).parents[3] / "shared" / "data" / "feb4rag"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the data is not here")

COLLECTIONS = (
    "arguana", "scidocs", "scifact", "dbpedia-entity", "signal1m", "trec-news", "fever", "climate-fever", "nfcorpus", "fiqa",
    "trec-covid", "nq", "hotpotqa", "robust04", "msmarco", "webis-touche2020",
)  # fmt: skip
REQUESTS, RELEVANT, K, TOP_K, RRF = 790, 2, 5, 10, 60


@lru_cache(maxsize=1)
def graded() -> list[tuple[str, str, int, str, int]]:
    """(request, collection, rank, source, grade) of every line, grades of repeated pairs made one."""
    with gzip.open(DATA / "BEIR-QRELS-RM.txt.gz", "rt") as lines:
        rows = [line.split() for line in lines]
    best: Counter[tuple[str, str]] = Counter()
    for request, _, document, grade in rows:
        best[request, document] = max(best[request, document], int(grade))
    named = [(r, COLLECTIONS[n // (10 * REQUESTS)], n % 10 + 1, d, best[r, d]) for n, (r, _, d, _) in enumerate(rows)]
    return [(request, name, rank, f"{name}/{document}", grade) for request, name, rank, document, grade in named]


def test_blocks_are_the_collections_they_are_taken_for() -> None:
    weights, sums = (0, 2.5, 5, 10), Counter[tuple[str, str]]()
    with gzip.open(DATA / "BEIR-QRELS-RM.txt.gz", "rt") as lines:
        for n, line in enumerate(lines):
            request, _, _, grade = line.split()
            sums[request, COLLECTIONS[n // (10 * REQUESTS)]] += weights[int(grade)]  # type: ignore[assignment]
    stated = [line.split() for line in (DATA / "BEIR-QRELS-RS.txt").read_text().splitlines()]
    assert len(stated) == REQUESTS * len(COLLECTIONS)
    assert all(abs(sums[request, name] - int(score)) <= 1 for request, _, name, score in stated)


def expected() -> dict[str, dict[str, list[str]]]:
    """Relevant sources by request and collection; the request without any graded result has none."""
    found: dict[str, dict[str, list[str]]] = {}
    top = Counter[str]()
    for request, name, _, source, grade in graded():
        top[request] = max(top[request], grade)
        if grade >= RELEVANT:
            found.setdefault(request, {}).setdefault(name, []).append(source)
    return found | {request: {} for request, best in top.items() if best == 0}


def fixed() -> list[str]:
    """The three collections that are right most often."""
    counts = Counter(name for by_name in expected().values() for name in by_name)
    return [name for name, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:3]]


def routes(router: str) -> dict[str, list[str]]:
    """Where each request is sent."""
    if router == "oracle":
        return {request: sorted(by_name) for request, by_name in expected().items()}
    chosen = list(COLLECTIONS) if router == "all" else fixed()
    return dict.fromkeys(expected(), chosen)


def lists() -> dict[tuple[str, str], list[str]]:
    """The first K of each collection's own list."""
    found: dict[tuple[str, str], list[str]] = {}
    for request, name, rank, source, _ in graded():
        if rank <= K:
            found.setdefault((request, name), []).append(source)
    return found


@lru_cache(maxsize=3)
def world(router: str) -> CorpusWorld:
    own_lists, routed = lists(), routes(router)
    judged: list[Row] = []
    did: list[Row] = []
    for request, by_name in expected().items():
        row: Row = {"query_id": request, "query": f"request {request}", "expected_collections": list(by_name)}
        row |= {"expected_sources": by_name, "should_match": bool(by_name), "review_status": "reviewed"}
        judged.append(row | {"category": "multi_hop" if by_name else "negative"})
        did.append(_did(request, routed[request], own_lists))
    return CorpusWorld(judged, did, top_k=TOP_K)


def _did(request: str, routed: list[str], own_lists: dict[tuple[str, str], list[str]]) -> Row:
    """Merged by reciprocal rank, in the order of routing where ranks are equal."""
    fans = [(name, own_lists[request, name]) for name in routed]
    order = sorted((rank, n, source) for n, (_, ids) in enumerate(fans) for rank, source in enumerate(ids))
    return {
        "query_id": request,
        "routed_collections": routed,
        "fan_out": [{"collection": name, "k": K, "results": [{"fragment_id": s} for s in ids]} for name, ids in fans],
        "merged": [source for _, _, source in order],
    }


@lru_cache(maxsize=3)
def report(router: str) -> CorpusReport:
    with tempfile.TemporaryDirectory() as folder:
        return evaluate(corpus_config(Path(folder), world(router)), Options()).report


@lru_cache(maxsize=3)
def database(router: str) -> Any:
    """The world as flat tables."""
    con = duckdb.connect()
    con.execute("create table wanted(q text, c text, s text); create table routed(q text, c text, place int)")
    con.execute("create table listed(q text, c text, s text, rank int); create table merged(q text, s text, rank int)")
    con.execute("create table asked(q text, matches bool)")
    one = world(router)
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in ("wanted", "routed", "listed", "merged", "asked")}
    for row in one.judgments:
        rows["asked"].append((row["query_id"], row["should_match"]))
        rows["wanted"] += [(row["query_id"], c, s) for c, sources in row["expected_sources"].items() for s in sources]
    for row in one.results:
        q = row["query_id"]
        rows["routed"] += [(q, c, n) for n, c in enumerate(row["routed_collections"])]
        for part in row["fan_out"]:
            rows["listed"] += [(q, part["collection"], h["fragment_id"], n) for n, h in enumerate(part["results"], 1)]
        rows["merged"] += [(q, s, n) for n, s in enumerate(row["merged"], 1)]
    for name, found in rows.items():
        if found:
            columns = [list(column) for column in zip(*found, strict=True)]
            con.execute(f"insert into {name} select {', '.join(['unnest(?)'] * len(columns))}", columns)
    return con


def sql(router: str, query: str) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = database(router).execute(query).fetchall()
    return rows


ROUTERS = ("oracle", "all", "top3")

ROUTING = """
with w as (select distinct q, c from wanted),
r as (select a.q,
  (select count(*) from w where w.q = a.q) as n_expected,
  (select count(*) from routed t where t.q = a.q) as n_routed,
  (select count(*) from routed t join w using (q, c) where t.q = a.q) as n_right,
  (select count(*) from routed t join w using (q, c) where t.q = a.q and t.place = 0) as first_right
  from asked a where matches)
select avg((n_right = n_expected and n_right = n_routed)::int), avg(n_right / n_routed), avg(n_right / n_expected),
  avg(2 * n_right / (n_expected + n_routed)), avg(first_right), sum(n_routed - n_right), count(*) from r"""


@pytest.mark.parametrize("router", ROUTERS)
def test_routing_equals_sql(router: str) -> None:
    told = report(router)
    names = ("routing_exact", "routing_precision", "routing_recall", "routing_f1", "first_choice", "extra_fan_out")
    (figures,) = sql(router, ROUTING)
    assert [value(told, name) for name in names] == pytest.approx([float(f) for f in figures[:-1]], abs=1e-9)
    assert told.rows.positives == figures[-1]
    (none,) = sql(
        router, "select avg((not exists(select 1 from routed t where t.q = a.q))::int) from asked a where not matches"
    )
    assert value(told, "expected_none") == none[0]


STAGES = f"""
with f as (select w.q, w.c, w.s,
  exists(select 1 from routed t where t.q = w.q and t.c = w.c) as routed,
  exists(select 1 from listed l where l.q = w.q and l.c = w.c and l.s = w.s) as retrieved,
  exists(select 1 from merged m where m.q = w.q and m.s = w.s and m.rank <= {TOP_K}) as merged
  from wanted w)
"""


@pytest.mark.parametrize("router", ROUTERS)
def test_evidence_by_stage_equals_sql(router: str) -> None:
    told = report(router)
    (counts,) = sql(
        router,
        STAGES + "select count(*), sum(routed::int), sum(retrieved::int), sum(merged::int), sum((not routed)::int), "
        "sum((routed and not retrieved)::int), sum((retrieved and not merged)::int) from f",
    )
    flow = told.evidence
    assert (flow.expected, *[flow.kept[s] for s in ("routed", "retrieved", "merged")]) == counts[:4]
    assert (flow.lost["lost_by_routing"], flow.lost["lost_by_rank"], flow.lost["lost_by_merge"]) == counts[4:]
    assert flow.kept["final"] == flow.kept["merged"]
    (means,) = sql(
        router,
        STAGES + ", p as (select q, avg(routed::int) a, avg(retrieved::int) b, avg(merged::int) c, bool_and(merged) d "
        "from f group by q) select avg(a), avg(b), avg(c), avg(d::int) from p",
    )
    names = ("kept_routed", "kept_retrieved", "kept_merged", "all_kept")
    assert [value(told, name) for name in names] == pytest.approx(list(means), abs=1e-9)


@pytest.mark.parametrize("router", ROUTERS)
def test_curves_of_every_collection_equal_sql(router: str) -> None:
    told = report(router)
    rows = sql(
        router,
        """with e as (select w.q, w.c, count(*) n from wanted w join routed using (q, c) group by w.q, w.c),
        k as (select unnest(range(1, 6)) as k),
        f as (select e.q, e.c, k.k, e.n, count(l.s) as got from e cross join k
          left join (select l.* from listed l join wanted using (q, c, s)) l on l.q = e.q and l.c = e.c and l.rank <= k.k
          group by e.q, e.c, k.k, e.n)
        select c, k, avg((got > 0)::int), avg(got / n), count(*), sum(n - got) from f group by c, k order by c, k""",
    )
    names = {row[0] for row in rows}
    assert names == {part.collection for part in told.collections if part.routed_rightly}
    for name in names:
        mine = [row for row in rows if row[0] == name]
        assert own(told, name, "hit@k") == pytest.approx([row[2] for row in mine], abs=1e-9)
        assert own(told, name, "recall@k") == pytest.approx([row[3] for row in mine], abs=1e-9)
        part = collection(told, name)
        assert (part.routed_rightly, part.beyond_k) == (mine[-1][4], mine[-1][5])
        complete = [row[1] for row in mine if row[5] == 0]
        assert part.sufficient_k == (complete[0] if complete else None)


def test_the_shares_of_loss_tell_the_three_routers_apart() -> None:
    """An oracle loses nothing by routing; all collections lose most by merge; a fixed three most by routing."""
    shares = {
        router: {k: n / report(router).evidence.expected for k, n in report(router).evidence.lost.items()} for router in ROUTERS
    }
    assert shares["oracle"]["lost_by_routing"] == shares["all"]["lost_by_routing"] == 0
    assert max(shares["all"], key=shares["all"].__getitem__) == "lost_by_merge"
    assert max(shares["top3"], key=shares["top3"].__getitem__) == "lost_by_routing"
    assert shares["oracle"]["lost_by_rank"] == shares["all"]["lost_by_rank"] > shares["top3"]["lost_by_rank"]
    assert shares["oracle"]["lost_by_merge"] < shares["all"]["lost_by_merge"]
    assert report("all").over_fan_out.in_vain > report("top3").over_fan_out.in_vain > report("oracle").over_fan_out.in_vain == 0
