"""ir_measures on a generated world: python with_ir_measures.py FOLDER json|trec. Prints its figures as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import ir_measures  # type: ignore[import-not-found]
import orjson
from ir_measures import AP, RR, P, R, Success, nDCG

NAMES = {nDCG @ 10: "ndcg@10", AP: "ap", RR: "rr", P @ 10: "precision@10", R @ 50: "recall@50", Success @ 10: "hit@10"}


def read(folder: Path, form: str) -> tuple[Any, Any]:
    if form == "json":
        return orjson.loads((folder / "qrels.json").read_bytes()), orjson.loads((folder / "run.json").read_bytes())
    return ir_measures.read_trec_qrels(str(folder / "qrels.txt")), ir_measures.read_trec_run(str(folder / "run.trec"))


def main() -> None:
    values = ir_measures.calc_aggregate(list(NAMES), *read(Path(sys.argv[1]), sys.argv[2]))
    print(json.dumps({"values": {name: values[theirs] for theirs, name in NAMES.items()}}))


if __name__ == "__main__":
    main()
