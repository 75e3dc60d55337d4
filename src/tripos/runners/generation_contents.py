"""Parts of a generation report that only tell what it rests on: names, targets, and the retrieval run."""

from __future__ import annotations

from typing import Any

from tripos.columns.bound import Bound
from tripos.columns.rows import Tally
from tripos.contracts.config import Config, GenerationConfig
from tripos.contracts.generation_report import NamedModel, RetrievalBasis
from tripos.errors import quoted


def label(config: Config, bound: Bound | None) -> tuple[str, str]:
    """Name and scope: as configured, else those of the retrieval report."""
    given = config.model_fields_set
    if bound is None:
        return config.name, config.scope
    return (
        config.name if "name" in given else bound.report.name,
        config.scope if "scope" in given else bound.report.scope,
    )


def basis(bound: Bound) -> RetrievalBasis:
    """The retrieval run that the evidence came from."""
    corpus = bound.components["A"].values or {}
    return RetrievalBasis(
        run_id=bound.report.run_id,
        results_digest=bound.report.results_digest,
        mode=bound.search.mode,
        limit=bound.depth.limit,
        top_k=bound.depth.handed_on,
        unit=bound.depth.unit,
        mean_fragments_a_source=corpus.get("mean_fragments_a_source"),
        mean_characters_a_fragment=corpus.get("mean_characters_a_fragment"),
    )


def named(name: str | None) -> NamedModel | None:
    """A model by name, and whether a revision pins it."""
    return None if name is None else NamedModel(name=name, pinned=bool(name.rpartition("@")[0] and name.rpartition("@")[2]))


def targets(config: Config) -> dict[str, Any]:
    """The thresholds as they were set."""
    own = config.generation
    return {
        "faithfulness": own.faithfulness_target,
        "qualified": own.qualified_answer_target,
        "abstention": own.abstention_target,
        "dropped": own.dropped_gates,
    }


def about_names(config: GenerationConfig, tally: Tally) -> list[str]:
    """What a reader should know of who answered and who judged."""
    roles = {"model": config.model or tally.only_model, "judge model": config.judge_model}
    others = sorted(tally.models - {config.model}) if config.model else []
    told = [
        (roles["model"] is None, "the model is not named (--model)"),
        (tally.sources.keys() - {"human"} and not config.judge_model, "nobody is named who gave the scores (--judge-model)"),
        (
            roles["model"] and roles["model"] == config.judge_model,
            "the judge is the model under test: it marks its own answers",
        ),
        (others, f"answers name another model: {', '.join(map(quoted, others[:3]))}"),
    ]
    unpinned = [(not pinned(name), f"{role} {quoted(name)} is unpinned: name@revision") for role, name in roles.items() if name]
    return [text for holds, text in (*told, *unpinned) if holds]


def pinned(name: str) -> bool:
    """Whether a name carries a revision."""
    own = named(name)
    return own is not None and own.pinned
