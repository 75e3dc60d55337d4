"""Which fragments a reader with these filters may see at all, as one mask over the corpus."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tripos.contracts.base import Scalar
from tripos.contracts.index import Corpus

Mask = NDArray[np.bool_]
_ABSENT = ("absent",)
_MAX_KEPT = 64


class Masks:
    """Masks by distinct (groups, filters), aligned with `ids`.

    The corpus alone decides who may see what: it is asked once for each distinct acl and each distinct value of a filtered
    field, and the answer is spread over the fragments that share it. Up to 64 masks are kept.
    """

    def __init__(self, corpus: Corpus, ids: Sequence[str]) -> None:
        self._corpus = corpus
        self._ids = ids
        self._acls: _Classes | None = None
        self._fields: dict[str, _Classes] = {}
        self._kept: dict[Hashable, Mask] = {}

    def admitted(self, groups: Iterable[str] | None, filters: Mapping[str, Scalar]) -> Mask | None:
        """True where `corpus.admits` is; None where nothing is restricted."""
        if groups is None and not filters:
            return None
        members = None if groups is None else frozenset(groups)
        key = (members, frozenset((name, _typed(value)) for name, value in filters.items()))
        if key not in self._kept:
            if len(self._kept) >= _MAX_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = self._mask(members, filters)
        return self._kept[key]

    def _mask(self, members: frozenset[str] | None, filters: Mapping[str, Scalar]) -> Mask:
        mask: Mask = np.ones(len(self._ids), dtype=np.bool_)
        if members is not None:
            mask &= self._by_acl().where(lambda name: self._corpus.readable(name, members))
        for field, value in filters.items():
            wanted = {field: value}
            mask &= self._by_field(field).where(lambda name, wanted=wanted: self._corpus.passes(name, wanted))
        return mask

    def _by_acl(self) -> _Classes:
        if self._acls is None:
            acls = self._corpus.acls
            self._acls = _Classes(self._ids, (acls.get(name) for name in self._ids))
        return self._acls

    def _by_field(self, field: str) -> _Classes:
        if field not in self._fields:
            metadata = self._corpus.metadata
            own: Iterable[Mapping[str, Scalar]] = (metadata.get(name, {}) for name in self._ids)
            self._fields[field] = _Classes(self._ids, (_typed(m[field]) if field in m else _ABSENT for m in own))
        return self._fields[field]


class _Classes:
    """Fragments that share a value, numbered; one of each class speaks for all."""

    def __init__(self, ids: Sequence[str], values: Iterable[Hashable]) -> None:
        numbers: dict[Hashable, int] = {}
        self._class_of = np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.int64)
        _, first = np.unique(self._class_of, return_index=True)
        self._speakers = [ids[place] for place in first.tolist()]

    def where(self, admits: Callable[..., bool]) -> Mask:
        """The mask of all fragments whose class is admitted."""
        answers: Mask = np.array([admits(name) for name in self._speakers], dtype=np.bool_)
        return answers[self._class_of]


def _typed(value: Scalar) -> tuple[str, Any]:
    """A key that keeps true, 1 and "1" apart, which a dict alone would not."""
    return type(value).__name__, value
