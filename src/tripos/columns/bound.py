"""A retrieval report as the ground that later layers stand on: its inputs read again, A to D derived again."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tripos.columns.ranking import Ranked, ranked, select, without_duplicates
from tripos.contracts.config import Config, DepthConfig, Options, SearchConfig
from tripos.contracts.fragments import source_of
from tripos.contracts.index import Corpus
from tripos.contracts.reports import Component, RetrievalReport
from tripos.contracts.retrieval import RankedRow, RetrievalJudgment
from tripos.errors import Findings, NotComparable
from tripos.files.jsonl import read_rows
from tripos.files.ranked import read_ranked
from tripos.files.reports import input_paths, load_retrieval_report
from tripos.files.retrieval import load_corpus
from tripos.fingerprint import (
    COMPONENT_NAMES,
    NO_CORPUS,
    RowDigests,
    combined,
    differences,
    digest,
    judgment_content,
    policy_component,
    results_content,
    row_digest,
)

Told = Callable[[int, int], None]


@dataclass(slots=True)
class Questions:
    """The retrieval judgments, as much as later layers need: which were scored, and what they ask."""

    number: dict[str, int] = field(default_factory=dict)
    scored: bytearray = field(default_factory=bytearray)
    texts: bytearray = field(default_factory=bytearray)

    def add(self, row: RetrievalJudgment, split: object) -> None:
        """Note one judgment."""
        self.number[row.query_id] = len(self.scored)
        self.scored.append(row.scored and split in ("all", row.split))
        self.texts += _text_digest(row.query)

    def is_scored(self, query_id: str) -> bool:
        """Whether the retrieval evaluation scored the query."""
        number = self.number.get(query_id)
        return number is not None and bool(self.scored[number])

    def asks_otherwise(self, query_id: str, query: str) -> bool:
        """Whether the retrieval judgments know the query by another text."""
        number = self.number.get(query_id)
        own = b"" if number is None else bytes(self.texts[16 * number : 16 * number + 16])
        return own not in (b"", _text_digest(None), _text_digest(query))


def _text_digest(text: str | None) -> bytes:
    return hashlib.blake2b(repr(text).encode("utf-8", "surrogatepass"), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Bound:
    """A retrieval report that was found to hold: its corpus, questions and depth."""

    path: str
    report: RetrievalReport
    corpus: Corpus | None
    questions: Questions
    search: SearchConfig
    depth: DepthConfig
    components: dict[str, Component]

    @property
    def system(self) -> str:
        """The stamp of its evidence."""
        return self.report.fingerprint.system

    @property
    def options(self) -> Options:
        """How its files were read."""
        return Options.model_validate({k: v for k, v in self.report.reading.items() if k in Options.model_fields})


def bind(path: str, config: Config, findings: Findings) -> Bound:
    """Read a retrieval report and its corpus and judgments again, and derive A to D from them.

    Args:
        path: The report.
        config: Fragments named here are read instead of the report's; a search policy or depth stated here must agree.
        findings: Takes the faults of the files.

    Raises:
        NotComparable: Some component is another one, told field by field; or the report was changed after it was written.
        InputError: The report, or a file that it names, breaks its contract.
    """
    report = load_retrieval_report(path)
    corpus, a = _corpus(report, path, config, findings)
    questions, b = _questions(report, path, findings)
    findings.raise_errors()
    _refuse(report, {"A": a, "B": b, **_stated(report, config)})
    values = report.fingerprint.components["D"].values or {}
    depth = DepthConfig.model_validate(values)
    search = SearchConfig.model_validate(report.fingerprint.components["C"].values)
    return Bound(path, report, corpus, questions, search, depth, report.fingerprint.components)


def _corpus(report: RetrievalReport, path: str, config: Config, findings: Findings) -> tuple[Corpus | None, Component]:
    own = report.fingerprint.components["A"]
    files = list(config.fragments) or input_paths(report, path, "fragments")
    if not files:
        return None, NO_CORPUS
    default = config.acl_default or (own.values or {}).get("acl_default")
    corpus, built = load_corpus(files, default, findings, **_reading(report))
    return corpus, built.component(default)


def _reading(report: RetrievalReport) -> dict[str, bool]:
    return {name: bool(report.reading.get(name)) for name in ("lenient", "allow_extra")}


def _questions(report: RetrievalReport, path: str, findings: Findings) -> tuple[Questions, Component]:
    questions, rows, reviewed = Questions(), RowDigests(), 0
    for file in input_paths(report, path, "judgments"):
        for _, row in read_rows(file, RetrievalJudgment, findings, **_reading(report)):
            questions.add(row, report.reading.get("split", "all"))
            if row.review_status == "reviewed":
                rows.add(row_digest(judgment_content(row)))
                reviewed += 1
    stated = report.fingerprint.components["B"].values or {}
    values = {**stated, "rows": rows.unordered(), "reviewed": reviewed}
    return questions, Component(digest=digest(values), values=values)


def _stated(report: RetrievalReport, config: Config) -> dict[str, Component]:
    """C and D as this command states them; where it states none, as the report's own values make them."""
    own = report.fingerprint.components
    c, d = (Component(digest=digest(own[letter].values), values=own[letter].values) for letter in "CD")
    if config.search.policy():
        c = policy_component(config.search)
    if "depth" in config.model_fields_set:  # what is not stated is the report's, not the default
        values = {**(own["D"].values or {}), **config.depth.model_dump(mode="json", exclude_unset=True)}
        d = Component(digest=digest(values), values=values)
    return {"C": c, "D": d}


def _refuse(report: RetrievalReport, here: dict[str, Component]) -> None:
    own = report.fingerprint
    told = [line for letter in COMPONENT_NAMES for line in differences(letter, own.components[letter], here[letter])]
    if not told and (own.configuration, own.system) != (combined(here, "ABCD"), combined(here, "ACD")):
        told = ["the fingerprint in the report does not follow from its own components"]
    if not told and digest(report.model_dump(mode="json", exclude={"run_id", "provenance"})) != report.run_id:
        told = ["the report was changed after it was written: its content does not make its run_id"]
    if told:
        raise NotComparable("not the configuration of the retrieval report\n" + "\n".join(told))


class Lists:
    """What the bound run hands on for each query: its top K, as fragment numbers; four bytes a fragment."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._rows: dict[str, int] = {}
        self._starts, self._flat = array("q", [0]), array("i")

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def add(self, query_id: str, names: list[str]) -> None:
        """Keep one list."""
        self._rows[query_id] = len(self._starts) - 1
        for name in names:
            number = self._numbers.setdefault(name, len(self._names))
            if number == len(self._names):
                self._names.append(name)
            self._flat.append(number)
        self._starts.append(len(self._flat))

    def get(self, query_id: str) -> list[str] | None:
        """The list of a query, best first; None where the run has none."""
        row = self._rows.get(query_id)
        if row is None:
            return None
        return [self._names[n] for n in self._flat[self._starts[row] : self._starts[row + 1]]]


def lists_of(bound: Bound, findings: Findings, told: Told | None = None) -> Lists:
    """The top K of every query of the bound run; raises NotComparable where its results are not those measured."""
    lists = Lists()
    for row, names in handed_on(bound, findings, told):
        if names is not None:
            lists.add(row.query_id, names)
    return lists


def handed_on(bound: Bound, findings: Findings, told: Told | None = None) -> Iterator[tuple[RankedRow, list[str] | None]]:
    """Each ranked row of the bound run with its top K, best first; None for a row that carries an error.

    Raises, at the end, InputError for faulty rows, then NotComparable for results that are not those measured.
    """
    for row, names in whole_lists(bound, findings, told):
        yield row, None if names is None else names[: bound.depth.handed_on]


def whole_lists(bound: Bound, findings: Findings, told: Told | None = None) -> Iterator[tuple[RankedRow, list[str] | None]]:
    """The same with all that came within limit."""
    digests, options, reading = RowDigests(), bound.options, _reading(bound.report)
    total = bound.report.counts.result_rows
    for file in input_paths(bound.report, bound.path, "ranked_results"):
        for n, row in enumerate(read_ranked(file, findings, lenient=reading["lenient"], allow_extra=reading["allow_extra"])):
            if told and n % 500 == 0:
                told(n, total)
            found = ranked(row, options.order, findings)
            found = without_duplicates(found, options.duplicates == "keep-first" or options.lenient, row.place, findings)
            if bound.questions.is_scored(row.query_id):
                content = results_content(row.query_id, found.ids, found.scores, row.error)
                digests.add(hashlib.sha256(content).digest())
            yield row, None if row.error is not None else _placed(found, bound)
    findings.raise_errors()
    if digests.unordered() != bound.report.results_digest:
        text = "the ranked results are not those that the retrieval report measured: evaluate them again"
        raise NotComparable(f"{text}\n{bound.path}: results_digest")


def _placed(found: Ranked, bound: Bound) -> list[str]:
    """min_score, then one fragment a source where sources are counted, then limit."""
    if (bar := bound.search.min_score) is not None and found.scores is not None:
        found = select(found, [i for i, score in enumerate(found.scores) if score >= bar])
    if bound.depth.unit == "source":
        first: dict[str, int] = {}
        for i in range(len(found.ids)):
            first.setdefault(_source(found, i, bound.corpus), i)
        found = select(found, list(first.values()))
    return list(found.ids[: bound.depth.limit])


def _source(found: Ranked, i: int, corpus: Corpus | None) -> str:
    name, given = found.ids[i], None if found.sources is None else found.sources[i]
    known = corpus.sources.get(name) if corpus is not None else None
    return known or given or source_of(name)
