"""Check: the judgments, and who may judge, are those that git has."""

from __future__ import annotations

from tripos.certify.dossier import Dossier
from tripos.certify.inventory import Item, inventory
from tripos.certify.record import Outcome, check, failed, passed, warned
from tripos.files.git import Committed, GitProblem, committed

_ROLES = ("retrieval_judgments", "generation_judgments", "generation_input", "corpus_judgments", "approved_judges")
"""What people decided, so that git must show who did. The configuration may stand uncommitted, and that is told."""


def judgments(dossier: Dossier) -> list[Item]:
    """The files that hold reviewed rows, and the list of approved judges."""
    return [item for item in inventory(dossier) if item.role in _ROLES]


@check("judgments-committed", "The golden files and the list of approved judges are committed in git, as they are.")
def judgments_committed(dossier: Dossier) -> Outcome:
    """The same content in HEAD as here; outside a repository, and where git cannot say, that is told, and no failure.

    So is a configuration that is not committed: whoever changed it may have lowered a gate.
    """
    dossier.report("retrieval")
    try:
        states = {item.path: committed(item.path) for item in judgments(dossier)}
        own = _of_configuration(dossier)
    except GitProblem as problem:
        return warned(f"nothing shows who changed the golden files, and when: {problem}")
    told = [f"{path}: {_fault(state)}" for path, state in states.items() if state is not None and state.here != state.head]
    if told:
        return failed(
            "what people decided is not as committed", told, "review and commit them, or restore them: git checkout -- FILE"
        )
    outside = sum(state is None for state in states.values())
    if outside:
        return warned(
            f"{outside} of {len(states)} golden files and lists of judges are in no git repository: "
            "nothing shows who changed them, and when"
        )
    if own is not None and own.here != own.head:
        return warned(f"the configuration {_fault(own)}: nothing shows who set its gates, and when")
    return passed(f"{len(states)} files")


def _of_configuration(dossier: Dossier) -> Committed | None:
    path = dossier.demands.config_path
    return None if path is None else committed(path)


def _fault(state: Committed) -> str:
    if state.head is None:
        return f"is not committed in the repository at {state.root}"
    return f"is changed: {state.here[:12]} here, {state.head[:12]} in HEAD"
