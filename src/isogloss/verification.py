"""Whether a finished turn holds what the request asked for: tool choice, strict arguments, the answer's format.

Under a grammar it does by construction, and this is the proof; without one, this decides whether to ask again.
"""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import msgspec

from isogloss.constraints import Constraint, accepts, compile_check
from isogloss.errors import GrammarError, SchemaError
from isogloss.json_fields import listed, shown
from isogloss.messages import AssistantMessage, Conversation, TextGrammar, ToolCall, ToolChoice
from isogloss.tokenizers import byte_level

_LONGEST_MESSAGE = 500
"""The validator repeats the value that is wrong, however long."""


class Verification:
    """What a conversation asks of its next turn.

    Raises `SchemaError` for a strict schema that is none, `GrammarError` for a custom tool's grammar that is none.
    """

    def __init__(self, conversation: Conversation) -> None:
        choice = ToolChoice.of(conversation.tool_choice)
        self._tools = {tool.name: tool for tool in choice.allowed(conversation.tools)}
        self._must_call = choice.mode == "required"
        self._parallel = conversation.parallel_tool_calls
        self._arguments = {
            tool.name: _validator(tool.parameters, f"/tools/{position}/parameters")
            for position, tool in enumerate(conversation.tools)
            if tool.name in self._tools and tool.strict and not tool.is_custom
        }
        self._texts = {
            tool.name: _text_constraint(tool.grammar, f"/tools/{position}/format")
            for position, tool in enumerate(conversation.tools)
            if tool.name in self._tools and tool.grammar is not None
        }
        form = conversation.response_format
        self._format = None if form is None or form.kind == "text" else form.kind
        self._may_refuse = form is None or form.may_refuse
        self._answer: jsonschema_rs.Validator | None = None
        if form is not None and form.schema is not None and form.strict:
            self._answer = _validator(form.schema, "/response_format/schema")
        self.is_beyond_grammars = bool(self._texts)
        """Whether a grammar of the turn leaves something open: most formats cannot bind text inside their strings."""
        self.binds = bool(
            self._arguments or self._texts or self._must_call or self._format or (self._tools and not self._parallel)
        ) or (choice.mode == "none" and bool(conversation.tools))
        """Whether anything is asked that a model left to itself may fail to do."""

    def fault(self, message: AssistantMessage) -> str | None:
        """What is wrong with the turn, if anything. A turn that was cut short, or refuses, says so itself."""
        if message.finish not in ("stop", "tool_calls"):
            return None
        if message.refusal and not message.tool_calls:
            return None if self._may_refuse else "it is a refusal"
        if message.malformed:
            return f"it has a malformed tool call ({message.malformed[0].reason})"
        if message.tool_calls:
            return self._calls_fault(message.tool_calls)
        if self._must_call:
            return f"no tool was called; one of these must be: {listed(self._tools)}"
        return self._answer_fault(message.text)

    def _calls_fault(self, calls: tuple[ToolCall, ...]) -> str | None:
        if len(calls) > 1 and not self._parallel:
            return f"{len(calls)} tools were called; only one may be"
        for call in calls:
            if call.name not in self._tools:
                return f"the tool {shown(call.name)} may not be called; the tools are: {listed(self._tools) or 'none'}"
            validator = self._arguments.get(call.name)
            fault = validator and _first_error(validator, call.arguments)
            if fault:
                return f"the arguments of {shown(call.name)} do not satisfy their schema: {fault}"
            constraint = self._texts.get(call.name)
            text = str(call.arguments.get("input", ""))
            if constraint is not None and not accepts(constraint, text).is_accepted:
                return f"the text given to {shown(call.name)} does not satisfy its grammar"
        return None

    def _answer_fault(self, text: str) -> str | None:
        if self._format is None:
            return None
        try:
            answer = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            return f"the answer is not JSON: {error}"
        if self._answer is not None:
            fault = _first_error(self._answer, answer)
            return fault and f"the answer does not satisfy its schema: {fault}"
        if self._format == "json_object" and not isinstance(answer, dict):
            return "the answer is JSON, but not an object"
        return None


def _text_constraint(grammar: TextGrammar, pointer: str) -> Constraint:
    make = Constraint.from_lark if grammar.syntax == "lark" else Constraint.from_regex
    constraint = make(grammar.definition)
    try:
        compile_check(constraint.lark, byte_level())
    except GrammarError as error:
        raise GrammarError(error.message, pointer=pointer) from None
    return constraint


def _validator(schema: dict[str, Any], pointer: str) -> jsonschema_rs.Validator:
    try:
        return jsonschema_rs.validator_for(schema, validate_formats=False, retriever=_refuse_to_retrieve)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        reason = error.message if isinstance(error, jsonschema_rs.ValidationError) else str(error)
        raise SchemaError(f"Invalid JSON Schema: {reason}", pointer=pointer) from None


def _refuse_to_retrieve(uri: str) -> Any:
    raise ValueError(f"schemas are not fetched: {uri}")


def _first_error(validator: jsonschema_rs.Validator, value: Any) -> str | None:
    for error in validator.iter_errors(value):
        place = "".join(f"/{step}" for step in error.instance_path)
        message = error.message if len(error.message) <= _LONGEST_MESSAGE else f"{error.message[:_LONGEST_MESSAGE]}..."
        return f"{message} - at `{place or '/'}`"
    return None
