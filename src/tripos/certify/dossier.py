"""Everything that the checks of one certification look at: the reports as they stand, and the layers evaluated again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tripos.across.runs import FILES
from tripos.certify.demands import Demands
from tripos.certify.recompute import Again, Progress, evaluated_again
from tripos.certify.record import CannotTell, lines_of
from tripos.contracts.config import LayerName
from tripos.contracts.corpus_report import CorpusReport
from tripos.contracts.generation_report import GenerationReport
from tripos.contracts.reports import RetrievalReport
from tripos.errors import InputError
from tripos.files.reports import input_paths, load_document
from tripos.runners.settings import Report

_MODELS: dict[LayerName, type[RetrievalReport | GenerationReport | CorpusReport]] = {
    "retrieval": RetrievalReport,
    "generation": GenerationReport,
    "corpus": CorpusReport,
}


@dataclass(slots=True)
class Dossier:
    """One full run.

    Attributes:
        folder: The run's folder.
        demands: What must hold.
        reports: The demanded reports that could be read, as they stand.
        faults: Why a demanded report that is there could not be.
        again: The layers evaluated again.
    """

    folder: str
    demands: Demands
    reports: dict[LayerName, Report] = field(default_factory=dict)
    faults: dict[LayerName, InputError] = field(default_factory=dict)
    again: dict[LayerName, Again] = field(default_factory=dict)

    @property
    def layers(self) -> tuple[LayerName, ...]:
        """The demanded layers."""
        return self.demands.layers

    def path(self, layer: LayerName) -> str:
        """Where the layer's report stands."""
        return str(Path(self.folder) / FILES[layer][0])

    def report(self, layer: LayerName) -> Report:
        """The report as it stands; raises CannotTell."""
        if layer in self.reports:
            return self.reports[layer]
        raise CannotTell(f"there is no {layer} report that can be read")

    def anew(self, layer: LayerName) -> Again:
        """The layer evaluated again, as far as that went; raises CannotTell where there was nothing to begin with."""
        self.report(layer)
        return self.again[layer]

    def made(self, layer: LayerName) -> Report:
        """The report as it should be; raises CannotTell where the evaluation did not end."""
        again = self.anew(layer)
        if again.report is not None:
            return again.report
        why = next(lines_of(again.fault)) if again.fault is not None else "it did not end"
        raise CannotTell(f"the {layer} layer could not be evaluated again: {why}")

    @property
    def retrieval(self) -> RetrievalReport:
        """The retrieval layer, evaluated again."""
        report = self.made("retrieval")
        assert isinstance(report, RetrievalReport)
        return report

    @property
    def generation(self) -> GenerationReport | None:
        """The generation layer, evaluated again; None where it is not demanded."""
        if "generation" not in self.layers:
            return None
        report = self.made("generation")
        assert isinstance(report, GenerationReport)
        return report

    @property
    def corpus(self) -> CorpusReport | None:
        """The corpus layer, evaluated again; None where it is not demanded."""
        if "corpus" not in self.layers:
            return None
        report = self.made("corpus")
        assert isinstance(report, CorpusReport)
        return report

    @property
    def approved_judges(self) -> str | None:
        """The list of approved judges: as demanded, else the one that the generation report names."""
        if self.demands.approved_judges is not None:
            return self.demands.approved_judges
        report = self.reports.get("generation")
        named = input_paths(report, self.path("generation"), "approved_judges") if report is not None else []
        return named[0] if named else None


def gathered(folder: str, demands: Demands, progress: Callable[[LayerName], Progress | None]) -> Dossier:
    """Read the demanded reports, and evaluate every layer that has one again, once."""
    dossier = Dossier(folder, demands)
    for layer in demands.layers:
        path = dossier.path(layer)
        if Path(path).is_file():
            try:
                dossier.reports[layer] = load_document(path, _MODELS[layer], f"the report of tripos eval-{layer}")
            except InputError as fault:
                dossier.faults[layer] = fault
    for layer, report in dossier.reports.items():
        dossier.again[layer] = evaluated_again(report, dossier.path(layer), dossier.path("retrieval"), progress(layer))
    return dossier
