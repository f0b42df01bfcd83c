"""Writing calls whose arguments are raw text between tags, so that they read back as themselves or not at all.

Tags have no escapes. Whether a value holds something that ends it early depends on the scanner's look-ahead and on the
tools, so the scanner itself is asked: what was written is scanned, and compared with what was meant. Most values hold
nothing of that kind, which is found out faster (`_call_forms`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from isogloss.dialects._base import Dialect
from isogloss.dialects._call_forms import WriteCall, call_form
from isogloss.errors import UnrepresentableError
from isogloss.messages import AssistantMessage, Tool, ToolCall
from isogloss.notations.json import write as write_json
from isogloss.notations.markup import escape_tags, same, spaced
from isogloss.notations.markup import write as write_markup
from isogloss.prompt import PromptWriter
from isogloss.schema.coercion import coerce
from isogloss.schema.view import SchemaView, shared_view


def write_call(
    writer: PromptWriter,
    dialect: Dialect,
    call: ToolCall,
    tools: Sequence[Tool],
    write: WriteCall,
    text_of: Callable[[Any, SchemaView | None], str] = write_markup,
) -> None:
    """Write a call with ``write``. ``text_of`` writes a value so that what reads its text, by itself, reads the value.

    Raises `UnrepresentableError` where the dialect would read something else.
    """
    views = _views(call, tools)
    texts = {key: text_of(value, views[key]) for key, value in call.arguments.items()}
    form = call_form(dialect, write, call)
    if form is None or not form.write(writer, tuple(texts.values())):
        write_read_back(writer, dialect, call, tools, write, texts)


def write_read_back(
    writer: PromptWriter,
    dialect: Dialect,
    call: ToolCall,
    tools: Sequence[Tool],
    write: WriteCall,
    texts: Mapping[str, str],
) -> None:
    """Write a call whose values have these texts, scan it, and compare. Raises `UnrepresentableError`."""
    views = _views(call, tools)
    escaped = {key: _without_tags(text, call.arguments[key], views[key]) for key, text in texts.items()}
    found = AssistantMessage()
    for candidate in (texts, escaped):
        draft = PromptWriter()
        write(draft, call, candidate)
        prompt = draft.prompt()
        found = dialect.parse(prompt.text, tools)
        if _is_call(found, call):
            writer.extend(prompt.segments)
            return
    raise UnrepresentableError(f"The {dialect.name} format cannot carry {_what(found, call)}")


def _views(call: ToolCall, tools: Sequence[Tool]) -> dict[str, SchemaView | None]:
    schema = next((tool.parameters for tool in reversed(tools) if tool.name == call.name), None)
    view = None if schema is None else shared_view(schema)
    return {key: None if view is None else view.member(key) for key in call.arguments}


def _without_tags(text: str, value: Any, view: SchemaView | None) -> str:
    """The value as JSON without ``<`` where that reads back as it, else the text as it is."""
    escaped = escape_tags(spaced(value))
    return escaped if "<" in text and same(coerce(view, escaped), value) else text


def _is_call(found: AssistantMessage, call: ToolCall) -> bool:
    if found.text or found.reasoning or found.malformed or len(found.tool_calls) != 1:
        return False
    read = found.tool_calls[0]
    return read.name == call.name and write_json(read.arguments) == write_json(call.arguments)


def _what(found: AssistantMessage, call: ToolCall) -> str:
    """What of the call it is that reads back differently."""
    read = found.tool_calls[0] if len(found.tool_calls) == 1 else None
    if read is not None and read.name != call.name:
        return f"the name {call.name!r}"
    for key, value in call.arguments.items():
        if read is not None and (key not in read.arguments or not same(read.arguments[key], value)):
            return f"the argument {key!r} of {call.name!r}: {write_json(value)[:80]}"
    return f"this call of {call.name!r}: {write_json(call.arguments)[:80]}"
