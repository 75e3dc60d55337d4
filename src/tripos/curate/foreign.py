"""Files that no command reads as they are, and the line that turns each into one that some command reads."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from tripos.curate.diagnosis import Diagnosis, made
from tripos.curate.patients import Patient
from tripos.curate.recognise import Form, Look
from tripos.curate.repair import field, jq, mended

_SMART_TOPICS = (
    r'{ sub(/\r$/, "") } /^\.I/ { if (n) print id "\t" text; id = $2; text = ""; n++; on = 0; next } '
    r'/^\.W/ { on = 1; next } /^\.[A-Z]/ { on = 0; next } on { text = text (text ? " " : "") $0 } END { print id "\t" text }'
)


def foreign(patient: Patient) -> Iterator[Diagnosis]:
    """Files that no command reads as they are."""
    path, to, look = shlex.quote(patient.path), shlex.quote(mended(patient.path)), patient.look
    match patient.form:
        case Form.BEIR_QRELS:
            first = "NR > 1 " if look.inside else ""
            target = shlex.quote(mended(patient.path).removesuffix(".jsonl") + ".qrels")
            text = "three columns, as BEIR's: TREC qrels have a second one, which is ignored"
            yield made(patient.path, "columns", "", text, fix=f"awk '{first}{{print $1, 0, $2, $3}}' {path} > {target}")
        case Form.SMART:
            lines = f"awk {shlex.quote(_SMART_TOPICS)} {path}"
            if look.inside == "texts":
                text, end = "a SMART file: write its texts as id<TAB>text", f" > {to.replace('.jsonl', '.tsv')}"
            else:
                program = shlex.quote('split("\\t") | {fragment_id: .[0], text: .[1]}')
                text, end = "a SMART file: write its documents as fragments", f" | jq -Rc {program} > {to}"
            yield made(patient.path, "smart", "", text, fix=lines + end)
        case Form.PASSAGES:
            yield made(patient.path, "foreign_names", "", _renamed(look), fix=jq(look, [_row(look)]))
        case Form.RESULTS:
            yield made(patient.path, "foreign_names", "", _renamed(look), fix=_results_fix(look))
        case Form.GENERATION | Form.CORPUS | Form.REPORT:
            yield made(
                patient.path, "not_examined", "", f"{patient.form.value}: doctor looks at retrieval files", severity="warning"
            )
        case _:
            text = look.unread or "is nothing that is known here: no field is one that any file of Tripos has"
            yield made(patient.path, "unknown_form", "", text)


def _renamed(look: Look) -> str:
    pairs = ", ".join(f"{key} → {role}" for role, key in look.roles.items() if role != key)
    return f"{look.form.value}: {pairs or 'rows to be rewritten'}"


def _row(look: Look) -> str:
    """A fragment from a passage; what is left goes under metadata where it is a scalar."""
    parts = [f"{role}: ({field(key)}{'' if role == 'text' else ' | tostring'})" for role, key in look.roles.items()]
    gone = ", ".join(field(key) for key in look.roles.values())
    own = f'(del({gone}) | del(.metadata) | with_entries(select(.value | type != "object" and type != "array")))'
    return f"{{{', '.join(parts)}, metadata: {own}}}"


def _results_fix(look: Look) -> str:
    key = look.roles.get("results") or look.roles.get("fragment_ids", "")
    items = next((r.value[key] for r in look.records if isinstance(r.value.get(key), list) and r.value[key]), None)
    if "query_id" not in look.roles or items is None:
        return ""
    query = f"query_id: ({field(look.roles['query_id'])} | tostring)"
    if not isinstance(items[0], dict):
        return jq(look, [f"{{{query}, fragment_ids: ({field(key)} | map(tostring))}}"])
    names = ("fragment_id", "chunk_id", "doc_id", "docid", "docno", "passage_id", "id", "_id")
    name = next((n for n in names if n in items[0]), None)
    score = "score: .score" if "score" in items[0] else ""
    inner = ", ".join(part for part in (f"fragment_id: ({field(name or '')} | tostring)", score) if part)
    return jq(look, [f"{{{query}, results: ({field(key)} | map({{{inner}}}))}}"]) if name else ""
