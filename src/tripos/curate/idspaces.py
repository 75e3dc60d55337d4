"""Two sets of ids that should meet and do not: why, and what would bring them together."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from tripos.contracts.fragments import source_of
from tripos.errors import quoted

_SAMPLE = 200
_LONGEST_AFFIX = 40


class Reason(NamedTuple):
    """One explanation of why ids do not meet.

    Attributes:
        kind: fragment_ids, leading_zeros, white_space, case, prefix, suffix or ordinals.
        meets: How many of the missing ids it would bring home.
        example: One of them, as it stands.
        becomes: And what it would be.
        jq: The jq expression that changes one id string; "" where none does.
    """

    kind: str
    meets: int
    example: str
    becomes: str
    jq: str

    def told(self) -> str:
        """The reason as a clause."""
        names = f'"{quoted(self.example)}" here, "{quoted(self.becomes)}" there'
        return {
            "fragment_ids": f"fragment ids stand where source ids belong ({names})",
            "leading_zeros": f"leading zeros differ ({names})",
            "white_space": f"white space stands around ids ({names})",
            "case": f"upper and lower case differ ({names})",
            "prefix": f"a prefix differs ({names})",
            "suffix": f"a suffix differs ({names})",
            "ordinals": f"the ids here are exactly 1 to N, and N stand there: they look like positions ({names})",
        }[self.kind]


def why_apart(here: Collection[str], there: Collection[str]) -> Reason | None:
    """The explanation that brings home most of the ids that are here and not there; None below half of them.

    Args:
        here: All ids of one side, distinct.
        there: All ids of the other side, distinct and in file order.
    """
    known = set(there)
    missing = [name for name in here if name not in known]
    if not missing or not there:
        return None
    candidates = [*_rewritten(missing, there), *_affixed(missing, there), *_ordinal(here, there, len(missing))]
    best = max(candidates, key=lambda reason: reason.meets, default=None)
    return best if best is not None and 2 * best.meets >= len(missing) else None


def _rewritten(missing: Collection[str], there: Collection[str]) -> Iterable[Reason]:
    """Reasons by which both sides agree once each is brought to a plain form."""
    known = set(there)
    if pairs := [(name, source_of(name)) for name in missing if source_of(name) != name and source_of(name) in known]:
        jq = 'split("::") | if length > 1 then .[:-1] else . end | join("::")'
        yield Reason("fragment_ids", len(pairs), *pairs[0], jq)
    for kind, plain in (("white_space", str.strip), ("leading_zeros", _bare), ("case", str.casefold)):
        if pairs := _alike(missing, there, plain):
            yield Reason(kind, len(pairs), *pairs[0], _jq_of(kind, pairs))


def _bare(name: str) -> str:
    """Without leading zeros, of the whole id or of the number that ends it."""
    return re.sub(r"(?<![0-9])0+(?=[0-9])", "", name)


def _alike(missing: Collection[str], there: Collection[str], plain: Callable[[str], str]) -> list[tuple[str, str]]:
    """Each missing id with the one there that has the same plain form, where that form names one id on each side."""
    by_form = _unique(there, plain)
    return [(name, by_form[form]) for form, name in _unique(missing, plain).items() if form in by_form]


def _unique(names: Iterable[str], plain: Callable[[str], str]) -> dict[str, str]:
    forms: dict[str, str] = {}
    doubled: set[str] = set()
    for name in names:
        form = plain(name)
        if forms.setdefault(form, name) != name:
            doubled.add(form)
    return {form: name for form, name in forms.items() if form not in doubled}


def _jq_of(kind: str, pairs: list[tuple[str, str]]) -> str:
    """A jq expression under which every pair's first id becomes its second; "" where no simple one does."""
    lengths = {len(other) for _, other in pairs}
    expressions: dict[str, tuple[str, Callable[[str], str]]] = {
        "white_space": (r'gsub("^\\s+|\\s+$"; "")', str.strip),
        "leading_zeros": (r'sub("^0+(?=[0-9])"; "")', lambda name: re.sub(r"^0+(?=[0-9])", "", name)),
        "case": ("ascii_downcase", str.lower),
    }
    expression, change = expressions[kind]
    if all(change(name) == other for name, other in pairs):
        return expression
    width = max(lengths)
    if kind == "leading_zeros" and len(lengths) == 1 and all(name.zfill(width) == other for name, other in pairs):
        return f'("{"0" * width}" + .)[-{width}:]'
    return "ascii_upcase" if kind == "case" and all(name.upper() == other for name, other in pairs) else ""


def _affixed(missing: Collection[str], there: Collection[str]) -> Iterable[Reason]:
    """Reasons by which one side has a prefix or a suffix that the other lacks."""
    known = set(there)
    for affix, is_prefix, is_here in _affixes(list(missing)[:_SAMPLE], list(there)[: 5 * _SAMPLE], known):
        change = _changing(affix, is_prefix, is_here)
        pairs = [(name, change(name)) for name in missing if change(name) != name and change(name) in known]
        if pairs:
            yield Reason("prefix" if is_prefix else "suffix", len(pairs), *pairs[0], _affix_jq(affix, is_prefix, is_here))


def _affixes(some: list[str], others: list[str], known: set[str]) -> list[tuple[str, bool, bool]]:
    """The commonest differences as (affix, whether a prefix, whether the missing ids have it)."""
    votes: Counter[tuple[str, bool, bool]] = Counter()
    for name in some:
        for cut in range(1, min(len(name), _LONGEST_AFFIX + 1)):
            votes[name[:cut], True, True] += name[cut:] in known
            votes[name[-cut:], False, True] += name[:-cut] in known
    ours = set(some)
    for name in others:
        for cut in range(1, min(len(name), _LONGEST_AFFIX + 1)):
            votes[name[:cut], True, False] += name[cut:] in ours
            votes[name[-cut:], False, False] += name[:-cut] in ours
    return [affix for affix, n in votes.most_common(4) if n > 1 or (n and len(some) == 1)]


def _changing(affix: str, is_prefix: bool, is_here: bool) -> Callable[[str], str]:
    if is_here:
        return (lambda name: name.removeprefix(affix)) if is_prefix else (lambda name: name.removesuffix(affix))
    return (lambda name: affix + name) if is_prefix else (lambda name: name + affix)


def _affix_jq(affix: str, is_prefix: bool, is_here: bool) -> str:
    text = json.dumps(affix, ensure_ascii=False)
    if is_here:
        return f"ltrimstr({text})" if is_prefix else f"rtrimstr({text})"
    return f"{text} + ." if is_prefix else f". + {text}"


def _ordinal(here: Collection[str], there: Collection[str], n_missing: int) -> Iterable[Reason]:
    """The ids here are exactly 1 to N, and N others are there: they probably count those."""
    numbers = {str(i): name for i, name in enumerate(there, 1)}
    if len(here) > 1 and set(here) == numbers.keys() and set(there) != numbers.keys():
        example = next(number for number, name in numbers.items() if number != name)
        yield Reason("ordinals", n_missing, example, numbers[example], "")
