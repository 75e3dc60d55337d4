"""A recognised file together with the ids it holds, whatever its form, and the commands that name it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tripos.contracts.fragments import source_of
from tripos.curate.idspaces import why_apart
from tripos.curate.recognise import Form, Look, opened
from tripos.curate.repair import mended, tripos
from tripos.errors import Findings
from tripos.files.formats import trec

JUDGED = (Form.JUDGMENTS, Form.GOLDENS, Form.QRELS)
RESULTS = (Form.RANKED, Form.RUN)
ORDINAL = ("--query-ids", "ordinal")
CORPUS = (Form.FRAGMENTS, Form.PASSAGES)


@dataclass(frozen=True, slots=True)
class Patient:
    """A file, its ids (distinct, in file order), and what its own reader noted."""

    look: Look
    queries: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    fragments: list[str] = field(default_factory=list)
    rows: int = 0
    qrels: trec.Qrels | None = None
    findings: Findings = field(default_factory=Findings)

    @property
    def path(self) -> str:
        """Its path."""
        return self.look.path

    @property
    def form(self) -> Form:
        """What it holds."""
        return self.look.form


def admit(look: Look) -> Patient:
    """Read the ids of a recognised file."""
    findings = Findings()
    if look.form is Form.QRELS:
        qrels = trec.read_qrels(look.path, findings)
        sources = [name for docs in qrels.topics.values() for name, judged in docs.items() if judged.grade > 0]
        rows = sum(map(len, qrels.topics.values()))
        return Patient(look, list(qrels.topics), distinct(sources), rows=rows, qrels=qrels, findings=findings)
    if look.form is Form.RUN:
        run = trec.read_run(look.path, findings)
        names = distinct(name for docs in run.topics.values() for name in docs)
        return Patient(look, list(run.topics), [], names, sum(map(len, run.topics.values())), findings=findings)
    queries = look.strings("query_id")
    if look.form in CORPUS:
        names = look.strings("fragment_id")
        return Patient(look, [], _sources(look), names, len(look.records), findings=findings)
    return Patient(look, queries, look.strings("expected_sources"), _ranked(look), len(look.records), findings=findings)


def distinct(names: Iterable[str]) -> list[str]:
    """Each name once, in order."""
    return list(dict.fromkeys(names))


def _sources(look: Look) -> list[str]:
    fragment, source = look.roles.get("fragment_id", ""), look.roles.get("source_id", "")
    pairs = ((record.value.get(source), record.value.get(fragment)) for record in look.records)
    return distinct(str(given) if given is not None else source_of(str(name)) for given, name in pairs)


def _ranked(look: Look) -> list[str]:
    """The fragments of nested, columnar or flat results."""
    if look.form is not Form.RANKED:
        return []
    if "results" not in look.roles:
        return look.strings("fragment_ids") or look.strings("fragment_id")
    items = (item for record in look.records for item in opened(record.value.get(look.roles["results"])))
    return distinct(str(item["fragment_id"]) for item in items if isinstance(item, dict) and "fragment_id" in item)


@dataclass(frozen=True, slots=True)
class Ward:
    """All files given, and the command lines that name them; a file that was not given is named by what it should hold."""

    patients: Sequence[Patient]

    def of(self, *forms: Form) -> list[Patient]:
        """The files of these forms, in the order given."""
        return [patient for patient in self.patients if patient.form in forms]

    def first(self, name: str, *forms: Form) -> str:
        """The path of the first file of these forms, else `name`."""
        found = self.of(*forms)
        return found[0].path if found else name

    def lint(self, *flags: str) -> str:
        """Lint over the files given."""
        arguments = ["--judgments", self.first("JUDGMENTS", Form.JUDGMENTS), *self._fragments()]
        if ranked := self.of(Form.RANKED):
            arguments += ["--ranked-results", ranked[0].path]
        return tripos("lint", *arguments, *flags)

    def evaluation(self, *flags: str) -> str:
        """eval-retrieval over the files given."""
        judgments = ["--judgments", self.first("JUDGMENTS", Form.JUDGMENTS)]
        results = ["--ranked-results", self.first("RESULTS", Form.RANKED)]
        rest = ["--retrieval-mode", "MODE", *results, "--limit", "50", "--output", "DIR", *flags]
        return tripos("eval-retrieval", *self._fragments(), *judgments, *rest)

    def _fragments(self) -> list[str]:
        given = [patient.path for patient in self.of(Form.FRAGMENTS)] or ["FRAGMENTS"]
        return [part for path in given for part in ("--fragments", path)]

    def import_qrels(self, qrels: Patient, *flags: str) -> str:
        """Import of qrels, with the texts where they were given."""
        texts = self.of(Form.TOPICS)
        queries = ["--queries", texts[0].path] if texts else []
        ordinal = ["--query-ids", "ordinal"] if self.is_ordinal(qrels) and ORDINAL[1] not in flags else []
        output = mended(qrels.path, "judgments")
        return tripos("import trec", "--qrels", qrels.path, *queries, *ordinal, *flags, "--output", output)

    def is_ordinal(self, qrels: Patient) -> bool:
        """Whether the topics of the qrels look like positions among the texts given."""
        texts = self.of(Form.TOPICS)
        reason = why_apart(qrels.queries, texts[0].queries) if texts else None
        return reason is not None and reason.kind == "ordinals"

    def import_run(self, run: Patient) -> str:
        """Import of a run."""
        return tripos("import trec", "--run", run.path, "--output", mended(run.path, "ranked"))
