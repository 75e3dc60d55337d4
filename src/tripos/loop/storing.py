"""An evaluation and its storing: what a command says of where runs are kept, and the one call that keeps one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tripos.contracts.config import Config, Options
from tripos.errors import InputError, OutputError, UsageError, quoted
from tripos.store.layout import DEFAULT, refuse_nested

if TYPE_CHECKING:
    from tripos.columns.rows import Kept
    from tripos.contracts.certificate import Certificate
    from tripos.runners.corpus import CorpusEvaluation
    from tripos.runners.generation import GenerationEvaluation
    from tripos.runners.retrieval import Evaluation
    from tripos.store.writing import Stored

_MAX_LABEL = 100


@dataclass(frozen=True, slots=True)
class Storing:
    """Where one evaluation is stored, and under which labels."""

    folder: str
    labels: tuple[str, ...]

    def retrieval(self, outcome: Evaluation, config: Config, options: Options) -> Stored:
        """Store a retrieval evaluation; raises InputError or OutputError where that cannot be."""
        from tripos.store.retrieval import content_of
        from tripos.store.writing import store

        return store(content_of(outcome, config, options), self.folder, self.labels)

    def generation(self, outcome: GenerationEvaluation, kept: Kept, config: Config, options: Options) -> Stored:
        """Store a generation evaluation, under the same terms."""
        from tripos.store.generation import content_of
        from tripos.store.writing import store

        return store(content_of(outcome, kept, config, options), self.folder, self.labels)

    def corpus(self, outcome: CorpusEvaluation, config: Config) -> Stored:
        """Store a corpus evaluation, under the same terms."""
        from tripos.store.corpus import content_of
        from tripos.store.writing import store

        return store(content_of(outcome, config), self.folder, self.labels)

    def certificate(self, certificate: Certificate) -> Stored:
        """Store a certificate, granted or refused; no execution belongs to it."""
        from tripos.store.writing import Stored, store_certificate

        told = certificate.fingerprint
        row = {
            "certified": certificate.verdict.status == "certified",
            "name": certificate.name,
            "configuration": None if told is None else told.configuration,
            "run_ids": [layer.run_id for layer in certificate.layers.values()],
            "failed_checks": certificate.verdict.failed,
        }
        return Stored(*store_certificate(self.folder, certificate, row), execution_id="")


def storing(config: Config, *, from_file: bool, labels: Sequence[str] = (), off: bool = False) -> Storing | None:
    """Where an evaluation is to be stored; None: nowhere.

    Evaluations with a configuration file are stored, others where `store` is given.

    Args:
        config: The merged configuration.
        from_file: Whether there is a configuration file.
        labels: Names for the execution.
        off: --no-store.

    Raises:
        UsageError: A label that cannot be told from another name, labels of what is not stored, or a store inside another.
    """
    folder = config.store or (DEFAULT if from_file else None)
    if labels and (off or folder is None):
        raise UsageError("--label names a stored execution, and this one is not stored: add --store DIR, or drop --no-store")
    for label in labels:
        _check_label(label)
    if folder is not None and not off:
        refuse_nested(Path(folder))
    return None if off or folder is None else Storing(folder, tuple(dict.fromkeys(labels)))


def _check_label(label: str) -> None:
    from tripos.store.reading import is_taken

    if not label or len(label) > _MAX_LABEL or not label.isprintable() or label != label.strip():
        raise UsageError(f'--label "{quoted(label)}": 1 to {_MAX_LABEL} printable characters are expected, no space at an end')
    if is_taken(label):
        raise UsageError(f'--label "{label}": latest, baseline and hexadecimal names mean runs already: choose another')


def not_stored(error: InputError | OutputError, what: str = "run") -> OutputError:
    """The error of an evaluation or certification whose outputs were written and that could not be stored."""
    reason = str(error.findings[0]) if isinstance(error, InputError) else str(error)
    return OutputError(f"the outputs were written, but the {what} was not stored: {reason}")
