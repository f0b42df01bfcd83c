"""Strict schemas are checked before anything is generated, with OpenAI's own words for what is wrong."""

from __future__ import annotations

from typing import Any, Literal

from isogloss.errors import StrictSchemaError
from isogloss.messages import Conversation
from isogloss.schema.strict import api_message, check_strict


def check_strict_schemas(
    conversation: Conversation, format_pointer: str, tool_pointer: str, *, format_code: str
) -> None:
    """Raises `StrictSchemaError` with the first violation as its message and all of them listed.

    ``format_pointer`` and ``tool_pointer`` (with a place for the tool's position) are where the API has the schemas;
    ``format_code`` is its error code for a response format.
    """
    form = conversation.response_format
    if form is not None and form.schema is not None and form.strict:
        _check(form.schema, form.name, "response_format", format_pointer, format_code)
    for position, tool in enumerate(conversation.tools):
        if tool.strict and not tool.is_custom:
            pointer = tool_pointer.format(position)
            _check(tool.parameters, tool.name, "function", pointer, "invalid_function_parameters")


def _check(
    schema: dict[str, Any], name: str, what: Literal["response_format", "function"], pointer: str, code: str
) -> None:
    violations = check_strict(schema)
    if violations:
        error = StrictSchemaError(api_message(violations[0], name=name, what=what), violations, pointer=pointer)
        error.code = code
        raise error
