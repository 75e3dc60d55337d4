"""pytrec_eval-terrier on a generated world: python with_pytrec_eval.py FOLDER json|trec. Prints its figures as JSON.

Read in the quickest way that needs no other tool: dictionaries by orjson, or TREC text by pytrec_eval's own readers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import orjson
import pytrec_eval

NAMES = {
    "ndcg_cut_10": "ndcg@10",
    "map": "ap",
    "recip_rank": "rr",
    "P_10": "precision@10",
    "recall_50": "recall@50",
    "success_10": "hit@10",
}
ASKED = {"ndcg_cut.10", "map", "recip_rank", "P.10", "recall.50", "success.10"}


def read(folder: Path, form: str) -> tuple[Any, Any]:
    if form == "json":
        return orjson.loads((folder / "qrels.json").read_bytes()), orjson.loads((folder / "run.json").read_bytes())
    with (folder / "qrels.txt").open() as qrels, (folder / "run.trec").open() as run:
        return pytrec_eval.parse_qrel(qrels), pytrec_eval.parse_run(run)


def main() -> None:
    qrels, run = read(Path(sys.argv[1]), sys.argv[2])
    rows = pytrec_eval.RelevanceEvaluator(qrels, ASKED).evaluate(run).values()
    print(json.dumps({"values": {name: sum(row[theirs] for row in rows) / len(rows) for theirs, name in NAMES.items()}}))


if __name__ == "__main__":
    main()
