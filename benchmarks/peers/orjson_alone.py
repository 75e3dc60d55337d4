"""The floor under any reader of JSONL: orjson.loads on each line of a file, and nothing else. python orjson_alone.py FILE."""

from __future__ import annotations

import json
import sys

import orjson


def main() -> None:
    lines = 0
    with open(sys.argv[1], "rb") as file:
        for line in file:
            orjson.loads(line)
            lines += 1
    print(json.dumps({"lines": lines}))


if __name__ == "__main__":
    main()
