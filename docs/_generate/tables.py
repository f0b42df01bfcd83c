"""Tables that stand in handwritten pages: ``<!-- generated: NAME -->`` is replaced by `TABLES[NAME]`."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from dialect_pages import summary
from markup import code, fence, from_docstring, table

from isogloss import errors
from isogloss.cli._app import app
from isogloss.dialects import dialect_names, get_dialect
from isogloss.engines import engine_names, get_engine
from isogloss.schema import formats, strict
from isogloss.server import chat_request, request_fields, response_request

PLACE = re.compile(r"<!-- generated: (?P<name>[\w-]+) -->")
CONFORMANCE = Path(__file__).parents[2] / "benchmarks" / "conformance.json"

SUITES = {
    "draft2020-12": "JSON Schema Test Suite, 2020-12, required",
    "draft2020-12 formats": "JSON Schema Test Suite, 2020-12, formats",
    "draft7": "JSON Schema Test Suite, draft 7, required",
    "draft7 formats": "JSON Schema Test Suite, draft 7, formats",
    "maskbench": "a sample of MaskBench (schemas from practice)",
}


def filled(markdown: str) -> str:
    """A page with its tables. Raises `KeyError` for a table that nobody makes."""
    return PLACE.sub(lambda place: TABLES[place["name"]](), markdown)


def conformance() -> str:
    """The ratchet's figures."""
    noted: dict[str, dict[str, int]] = json.loads(CONFORMANCE.read_text(encoding="utf-8"))
    columns = ("right", "invalid accepted", "valid refused", "schemas refused", "by guard at end")
    rows = [
        (SUITES.get(name, name), *[str(figures.get(column, 0)) for column in columns])
        for name, figures in noted.items()
    ]
    return table(("suite", *columns), rows)


def format_table() -> str:
    """Formats that constrain, and by what."""
    rows = []
    for name in sorted(formats.KNOWN):
        parts = [
            "grammar" if formats.format_terminal(name) is not None else "",
            "guard" if name in formats.GUARDED else "",
        ]
        rows.append((code(name), " and ".join(part for part in parts if part), "yes" if name in strict.FORMATS else ""))
    return table(("format", "held by", "in the strict subset"), rows)


def strict_keywords() -> str:
    """Keywords of the strict subset."""
    return ", ".join(code(keyword) for keyword in sorted(strict.KEYWORDS | strict.ROOT_KEYWORDS))


def strict_limits() -> str:
    """Limits of the strict subset."""
    rows = (
        ("properties in all", strict.MOST_PROPERTIES),
        ("levels of nesting", strict.DEEPEST_NESTING),
        ("characters of all names, definitions, enum and const values", strict.MOST_CHARACTERS),
        ("enum values in all", strict.MOST_ENUM_VALUES),
        (f"characters of one enum with more than {strict.LARGE_ENUM} values", strict.MOST_LARGE_ENUM_CHARACTERS),
    )
    return table(("of a schema", "at most"), [(name, f"{limit:,}".replace(",", " ")) for name, limit in rows])


def request_fields_table() -> str:
    """What becomes of each field of a request, in both APIs."""
    apis = {"Chat Completions": chat_request, "Responses": response_request}
    sections = []
    for title, module in apis.items():
        without_effect = request_fields.TUNING & module._KNOWN - {"store", "metadata"}
        used = sorted(module._KNOWN - without_effect)
        sections.append(
            f"### {title}\n\n"
            f"**Honoured:** {', '.join(map(code, used))}.\n\n"
            f"**Accepted, without effect on the answer:** {', '.join(map(code, sorted(without_effect)))}.\n\n"
            "**Refused, with the reason:**\n\n"
            + table(("field", "why"), [(code(name), reason) for name, reason in sorted(module._REFUSED.items())])
        )
    return "\n\n".join(sections)


def engine_options_table() -> str:
    """The options that a request may have of each engine, but for those that are fields of the API."""
    known = chat_request._KNOWN | response_request._KNOWN
    rows = [(code(name), sorted(getattr(get_engine(name), "options", frozenset()) - known)) for name in engine_names()]
    return table(("engine", "options"), [(name, ", ".join(map(code, options))) for name, options in rows if options])


def error_tree() -> str:
    """The errors with their codes and HTTP status."""
    tree = (errors.__doc__ or "").split("\n\n")[1]
    rows = [
        (code(name), code(value.code), str(value.status), from_docstring((inspect.getdoc(value) or "").split("\n")[0]))
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.IsoglossError)
    ]
    return f"{fence(inspect.cleandoc(tree))}\n\n" + table(("error", "code", "status", "when"), rows)


def dialect_table() -> str:
    """All dialects."""
    rows = [(f"[{name}](dialects/{name}.md)", summary(get_dialect(name))) for name in dialect_names()]
    return table(("dialect", "format"), rows)


def engine_table() -> str:
    """All engines and their options."""
    sections = []
    for name in engine_names():
        engine: Any = get_engine(name)
        options = [
            parameter.name
            for parameter in inspect.signature(engine.__init__).parameters.values()
            if parameter.kind is parameter.KEYWORD_ONLY
        ]
        told = from_docstring(inspect.getdoc(inspect.getmodule(engine)) or "").split("\n")[0]
        sections.append((code(name), told, ", ".join(map(code, options))))
    return table(("engine", "what it is", "options"), sections)


def commands() -> str:
    """All commands, with their arguments and options, from the functions that they are."""
    return "\n\n".join(_command(str(info.name), info.callback) for info in app.registered_commands)


def parameters(command: Any) -> list[tuple[list[str], Any, str, Any]]:
    """Of each parameter of a command: its spellings (none for an argument), its value, its help, its default."""
    hints = get_type_hints(command, include_extras=True)
    found = []
    for name, parameter in inspect.signature(command).parameters.items():
        hint = hints[name]
        assert get_origin(hint) is Annotated
        kind, info = get_args(hint)[:2]
        is_option = type(info).__name__ == "OptionInfo"
        first = [info.default] if isinstance(info.default, str) else []
        named = [*first, *(info.param_decls or ())] or [f"--{name.replace('_', '-')}"]
        spellings = named if is_option else []
        found.append((spellings, info.metavar or _value(kind), info.help or "", parameter.default))
    return found


def _command(name: str, command: Any) -> str:
    text = inspect.getdoc(command) or ""
    text, _, example = text.partition("Example: ")
    example = re.sub(r"\[/?bold\]", "", example)
    rows = []
    for spellings, value, told, default in parameters(command):
        is_flag = default is False
        shown = " ".join(map(code, spellings)) if spellings else code("FILE")
        rows.append((shown, "" if is_flag else code(value), told, _default(default)))
    parts = [f"## isogloss {name}", text.strip(), fence(f"$ {example}", "console")]
    if rows:
        parts.append(table(("option", "value", "what it does", "default"), rows))
    return "\n\n".join(parts)


def _value(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(get_args(kind))
    names = [part.__name__ for part in (get_args(kind) or (kind,)) if isinstance(part, type) and part is not type(None)]
    known = {"Path": "PATH", "str": "TEXT", "int": "NUMBER", "float": "NUMBER"}
    return known.get(names[0] if names else "str", "TEXT")


def _default(default: Any) -> str:
    if default is ...:
        return "required"
    return "" if default is None or default is False else code(str(default))


TABLES: dict[str, Callable[[], str]] = {
    "commands": commands,
    "conformance": conformance,
    "dialects": dialect_table,
    "engine-options": engine_options_table,
    "engines": engine_table,
    "errors": error_tree,
    "formats": format_table,
    "request-fields": request_fields_table,
    "strict-keywords": strict_keywords,
    "strict-limits": strict_limits,
}
