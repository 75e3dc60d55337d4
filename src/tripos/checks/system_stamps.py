"""The stamp that answers carry, against the system they are evaluated under; and which component a foreign one differs in."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from tripos.checks.stamps import near_policies
from tripos.contracts.base import shown
from tripos.contracts.generation_report import Binding
from tripos.contracts.reports import Component
from tripos.errors import NotComparable
from tripos.files.generation import Pair
from tripos.fingerprint import COMPONENT_NAMES, digest

_MAX_DEPTH = 200


class SystemStamps:
    """The system fingerprints of answers, counted; foreign ones are refused at the end."""

    def __init__(self, components: Mapping[str, Component] | None, system: str | None) -> None:
        self._components, self._system = components, system
        self.answers = self.stamped = 0
        self._foreign: Pair | None = None
        self._n_foreign = 0

    def note(self, pair: Pair) -> None:
        """Count one answer."""
        if pair.answered is None:
            return
        self.answers += 1
        stamp = pair.answered.system_fingerprint
        self.stamped += stamp is not None
        if stamp is not None and self._system is not None and stamp != self._system:
            self._n_foreign += 1
            self._foreign = self._foreign or pair

    def refuse(self) -> None:
        """Raise NotComparable where some answer was written under another system."""
        if self._foreign is None or self._foreign.answered is None or self._components is None:
            return
        stamp = str(self._foreign.answered.system_fingerprint)
        told = f"{self._n_foreign} of {self.answers} answers were written from the evidence of another system"
        raise NotComparable(f"{told}\n{explained_stamp(stamp, self._components)}\n{self._foreign.place}  system_fingerprint")

    @property
    def binding(self) -> Binding:
        """How firmly the answers are bound."""
        if self._system is None:
            return "unbound"
        return "verified" if self.answers and self.stamped == self.answers else "declared"


def explained_stamp(stamp: str, components: Mapping[str, Component]) -> str:
    """Which components a foreign stamp differs in; found by trying near depths, policies and acl defaults in their place."""
    own = {letter: components[letter].digest for letter in "ACD"}
    for changed in _near_systems(components):
        if digest({**own, **{letter: digest(values) for letter, values in changed.items()}}) == stamp:
            return "\n".join(_difference(letter, values, components[letter].values or {}) for letter, values in changed.items())
    tried = "no other depth, search policy near by, or acl_default explains their stamp"
    return f"A corpus: most likely the answers were written from other fragments ({tried}, {stamp[:12]})"


_Values = dict[str, Any]


def _near_systems(components: Mapping[str, Component]) -> Iterator[dict[str, _Values]]:
    """Systems that differ in one component, then in the policy and the top K at once."""
    depth, policy, corpus = (dict(components[letter].values or {}) for letter in "DCA")
    policies = list(near_policies(policy))
    yield from ({"D": other} for other in _depths(depth))
    yield from ({"C": other} for other in policies)
    frozen = {key: value for key, value in corpus.items() if key in ("sources", "segmentation", "counts")}
    yield from ({"A": {**frozen, "acl_default": default}} for default in (None, "public", "deny") if corpus)
    depths = [{**depth, "top_k": top_k} for top_k in range(1, int(depth.get("limit") or 0) + 1)][:_MAX_DEPTH]
    yield from ({"C": other, "D": deep} for other, deep in itertools.product(policies, depths))


def _depths(depth: _Values) -> Iterator[_Values]:
    limits = dict.fromkeys((depth.get("limit"), *range(1, _MAX_DEPTH + 1)))
    for unit, limit in itertools.product(("fragment", "source"), limits):
        for top_k in range(1, int(limit or 0) + 1):
            yield {**depth, "limit": limit, "top_k": top_k, "unit": unit}


def _difference(letter: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    keys = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key) and (letter != "A" or key in theirs)]
    told = (f"{key} {_value(theirs, key)} in the answers, {_value(ours, key)} in retrieval" for key in keys)
    return f"{letter} {COMPONENT_NAMES[letter]}: {', '.join(told)}"


def _value(values: Mapping[str, Any], key: str) -> str:
    return shown(values[key]) if key in values else "not stated"
