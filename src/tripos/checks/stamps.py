"""The digests that ranked rows carry, against the corpus and the search policy they are evaluated under."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from tripos.contracts.base import shown
from tripos.contracts.config import MODES, SearchConfig
from tripos.contracts.reports import Component
from tripos.contracts.retrieval import RankedRow
from tripos.errors import NotComparable
from tripos.fingerprint import digest

_MAX_OPTIONAL = 6


class Stamps:
    """The digests that ranked rows carry, against components A and C."""

    def __init__(self, components: Mapping[str, Component], search: SearchConfig) -> None:
        self._expected = {"A": components["A"].digest, "C": components["C"].digest}
        self._search, self._rows = search, 0
        self._verified = {"A": 0, "C": 0}
        self._foreign: dict[str, RankedRow] = {}

    def watch(self, rows: Iterator[RankedRow]) -> Iterator[RankedRow]:
        """Pass rows on, noting what they carry."""
        for row in rows:
            self._rows += 1
            if row.corpus_digest is None and row.policy_digest is None:
                yield row
                continue
            for letter, stamp in (("A", row.corpus_digest), ("C", row.policy_digest)):
                if stamp is None or self._expected[letter] is None:
                    continue
                self._verified[letter] += 1
                if stamp != self._expected[letter]:
                    self._foreign.setdefault(letter, row)
            yield row

    def absorb(self, other: Stamps) -> None:
        """Count in what another part of the results carried."""
        self._rows += other._rows
        for letter, n in other._verified.items():
            self._verified[letter] += n
        for letter, row in other._foreign.items():
            self._foreign.setdefault(letter, row)

    def refuse(self) -> None:
        """Raise NotComparable when some row was made from another corpus or by another policy."""
        told = []
        if row := self._foreign.get("A"):
            text = f"searched a corpus with digest {str(row.corpus_digest)[:12]}; the fragments given have"
            told.append(f"A corpus  {row.place}  {text} {str(self._expected['A'])[:12]}")
        if row := self._foreign.get("C"):
            told.append(f"C search policy  {row.place}  {_policy_difference(str(row.policy_digest), self._search)}")
        if told:
            raise NotComparable("the ranked results were measured under another configuration\n" + "\n".join(told))

    def binding(self) -> dict[str, str]:
        """Whether A and C are verified by every row, declared, or absent."""
        states = {"A": "corpus", "C": "policy"}
        return {
            name: "absent"
            if self._expected[letter] is None
            else "verified"
            if self._rows and self._verified[letter] == self._rows
            else "declared"
            for letter, name in states.items()
        }


def _policy_difference(stamp: str, search: SearchConfig) -> str:
    """What the other policy was, field by field where a simple change explains its digest."""
    own = search.policy()
    for other in near_policies(own):
        if digest(other) == stamp:
            fields = [k for k in sorted(own.keys() | other.keys()) if own.get(k) != other.get(k)]
            return ", ".join(f"{k}: {_value(other, k)} in the ranked results, {_value(own, k)} here" for k in fields)
    return f"followed another policy (digest {stamp[:12]}) than the one given: {own} (digest {digest(own)[:12]})"


def near_policies(policy: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Policies that differ in the mode, or in that some settings were not stated."""
    optional = [k for k in policy if k != "mode"][:_MAX_OPTIONAL]
    for mode in (policy.get("mode"), *MODES):
        for n in range(len(optional) + 1):
            for dropped in itertools.combinations(optional, n):
                yield {k: mode if k == "mode" else v for k, v in policy.items() if k not in dropped}


def _value(policy: Mapping[str, Any], key: str) -> str:
    return shown(policy[key]) if key in policy else "not stated"
