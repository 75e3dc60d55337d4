"""What SQL may be run over a store, and what is wrong with the rest, told in one line.

DuckDB's parser hands out the whole tree of a statement that reads. It is walked here, since the kind of a statement says too
little: a SELECT may carry a COPY or an INSERT in its WITH clause, and table functions read files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import orjson

from tripos.errors import UsageError, quoted, suggest
from tripos.store.tables import TABLES

if TYPE_CHECKING:
    import duckdb

READING_NODES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
"""Query nodes that only read; every other one writes."""

TABLE_FUNCTIONS = {"range", "generate_series", "unnest", "json_each", "json_tree", "regexp_split_to_table"}
"""Functions that may stand in FROM; others read files, settings or memory, run SQL of their own, or act."""

REFUSED_FUNCTIONS = {"write_log", "getenv", "current_setting", "sleep_ms", "nextval", "currval"}
"""Scalar functions that act, wait, or tell of the machine."""

_CATALOG = {"information_schema", "pg_catalog"}
_ACTS = "a query only reads: SELECT, WITH, VALUES, DESCRIBE, SUMMARIZE or SHOW TABLES"


def check(connection: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    """The views that a statement reads; raises UsageError where it does anything but read them.

    Args:
        connection: Any connection; nothing is run but the parser.
        sql: The user's text.
    """
    if not sql.strip():
        raise UsageError("the query is empty")
    if "\0" in sql:
        raise UsageError("the query holds a NUL byte: is it text?")
    tree = _tree(connection, sql)
    statements = tree["statements"]
    if len(statements) != 1:
        raise UsageError(f"{len(statements)} statements: one query at a time")
    nodes = list(_nodes(statements[0]))
    for node in nodes:
        _refuse_acts(node)
        _refuse_functions(node)
    return _views(nodes)


def _tree(connection: duckdb.DuckDBPyConnection, sql: str) -> Mapping[str, Any]:
    """The parsed statements; raises UsageError for what does not parse, or is no query."""
    import duckdb

    try:
        found = connection.execute("SELECT json_serialize_sql($1::VARCHAR)", [sql]).fetchone()
        kinds = [statement.type.name for statement in duckdb.extract_statements(sql)]
    except duckdb.Error as error:
        raise UsageError(explained(str(error), sql)) from None
    except ValueError as error:  # a kind of statement that the Python side has no name for
        raise UsageError(f"{_ACTS} ({error})") from None
    tree: Mapping[str, Any] = orjson.loads(found[0]) if found else {"error": True}
    if not kinds:
        raise UsageError("the query is empty")
    if kinds == ["MULTI"]:
        raise UsageError("PIVOT must name its values: PIVOT … ON column IN ('a', 'b')")
    if odd := next((kind for kind in kinds if kind != "SELECT"), None):
        raise UsageError(f"{odd.replace('_', ' ')} is refused: {_ACTS}")
    if tree["error"]:
        raise UsageError(f"{_ACTS} ({str(tree.get('error_message', '')).splitlines()[0]})")
    return tree


def _nodes(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every object of the tree."""
    stack = [value]
    while stack:
        here = stack.pop()
        if isinstance(here, dict):
            yield here
            stack += here.values()
        elif isinstance(here, list):
            stack += here


def _refuse_acts(node: Mapping[str, Any]) -> None:
    kind = node.get("type")
    if isinstance(kind, str) and kind.endswith("_NODE") and kind not in READING_NODES:
        raise UsageError(f"{kind.removesuffix('_NODE').removesuffix('_QUERY').replace('_', ' ')} is refused: {_ACTS}")


def _refuse_functions(node: Mapping[str, Any]) -> None:
    if node.get("type") == "TABLE_FUNCTION":
        name = str(node["function"].get("function_name", "")).lower()
        if name not in TABLE_FUNCTIONS:
            text = f'"{quoted(name)}" is refused in FROM: a query reads the views of the store alone'
            raise UsageError(f"{text} (tripos query --tables) and {', '.join(sorted(TABLE_FUNCTIONS))}")
    elif str(node.get("function_name", "")).lower() in REFUSED_FUNCTIONS:
        raise UsageError(f'the function "{quoted(str(node["function_name"]))}" is refused: {_ACTS}')


def _views(nodes: list[Mapping[str, Any]]) -> list[str]:
    """The views that are named; all where the catalogue is asked for them. Raises UsageError for a file named as a table."""
    names: set[str] = set()
    for node in nodes:
        if node.get("type") == "SHOW_REF" and node.get("query") is None:
            names |= TABLES.keys()
        if node.get("type") != "BASE_TABLE":
            continue
        name = str(node.get("table_name", ""))
        if str(node.get("schema_name", "")).lower() in _CATALOG:
            names |= TABLES.keys()
        elif re.search(r"[./\\*]|^-$", name):
            raise UsageError(
                f'"{quoted(name)}" is no view: files are not read by a query (tripos query --tables lists the views)'
            )
        names.add(name.lower())
    return [name for name in TABLES if name in names]


_COLUMN = re.compile(r'(?:Referenced column|Column with name|column named) "([^"]+)"|Could not find column "([^"]+)"')
_TABLE = re.compile(r'(?:Table|View) with name "?(.+?)"? does not exist|Referenced table "([^"]+)" not found')
_FUNCTION = re.compile(r"Function with name \"?(\w+)\"? does not exist")
_NEAR = re.compile(r'Did you mean "([^"]+)"')
_MEASURE = re.compile(r'(?<!["\w])([a-z_]+)@([0-9]+|case)')


def explained(said: str, sql: str, columns: Mapping[str, list[str]] | None = None) -> str:
    """What DuckDB said of a query in one line: where, what, and what may be meant.

    Args:
        said: Its message.
        sql: The query.
        columns: Columns by view, of the views that the query names.
    """
    where, first = _place(said, sql), (said.splitlines() or ["failed"])[0]
    if found := _COLUMN.search(said):
        known = sorted({name for names in (columns or {}).values() for name in names})
        return f"{where}{_column(found[1] or found[2], sql, known, columns or {})}"
    if found := _TABLE.search(said):
        name = found[1] or found[2]
        return f'{where}there is no view "{quoted(name)}"{suggest(name, TABLES)}: tripos query --tables lists them'
    if found := _FUNCTION.search(said):
        near = _NEAR.search(said)
        return f'{where}there is no function "{found[1]}"' + (f' (did you mean "{near[1]}"?)' if near else "")
    return _about_parameters(first) or where + re.sub(r"^(\w+ )+Error: ", "", first)


def _about_parameters(said: str) -> str:
    names = said.rpartition(": ")[2]
    one = names.split(",")[0]
    if "Values were not provided" in said:
        return f"no value for parameter {names}: give it with --param {one}=VALUE"
    if "excess parameters" in said:
        return f"the query has no parameter {names}: in SQL it is ${one}"
    if "count mismatch for prepared statement. Expected 0" in said:
        return "the query has no parameter: in SQL they are $name"
    return ""


def _column(name: str, sql: str, known: list[str], columns: Mapping[str, list[str]]) -> str:
    if (found := next((m for m in _MEASURE.finditer(sql) if m[1] == name), None)) is not None:
        return f'there is no column "{quoted(name)}": names with @ stand in double quotes: "{found[0]}"'
    homes = [table.name for table in TABLES.values() if table.name not in columns and name in table.names]
    if homes:
        return f'there is no column "{quoted(name)}" here: it is one of {", ".join(homes)}'
    of = f" of {', '.join(columns)}" if columns else ""
    near = suggest(name, known)
    return f'there is no column "{quoted(name)}"{of}{near}' + ("" if near else ": tripos query --tables lists them")


def _place(said: str, sql: str) -> str:
    """Line and column of the fault, where DuckDB points at it."""
    lines = said.splitlines()
    for number, text in enumerate(lines[:-1]):
        found = re.match(r"LINE (\d+): ", text)
        if found and set(lines[number + 1].strip()) == {"^"}:
            line, at = int(found[1]), lines[number + 1].index("^") - found.end()
            shown, own = text[found.end() :], sql.splitlines()[int(found[1]) - 1]
            before = shown.startswith("...")
            start = own.find(shown.removeprefix("...").removesuffix("...")) - 3 if before else 0
            return f"line {line}, column {max(start + at, 0) + 1}: "
    return ""
