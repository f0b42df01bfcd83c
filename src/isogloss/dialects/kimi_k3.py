"""kimi_k3: typed arguments in XTML, a markup of control tokens and tags between them (Kimi K3).

    turn      = think response [ tools ] "<|close|>message<|sep|>" "<|end_of_msg|>"
    think     = "<|open|>think<|sep|>" text "<|close|>think<|sep|>"
    response  = "<|open|>response<|sep|>" text "<|close|>response<|sep|>"
    tools     = "<|open|>tools<|sep|>" { call } "<|close|>tools<|sep|>"
    call      = '<|open|>call tool="' name '" index="' number '"<|sep|>' { argument } "<|close|>call<|sep|>"
    argument  = '<|open|>argument key="' key '" type="' type '"<|sep|>' value "<|close|>argument<|sep|>"
    value     = a string as it is where type="string", else JSON
    result    = '<|open|>message role="tool" tool="' name '" index="' number '"<|sep|>' text "<|close|>message<|sep|>"

Sample::

    <|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city" type="string"<|sep|>
    Paris<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>

(in one line). The prompt has opened ``think``, or ``response`` where the model is not to think. All delimiters begin
and end with control tokens, so text keeps every character. Source: the chat template of moonshotai/Kimi-K3.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import ClassVar

import regex

from isogloss.constraints.constraint import Constraint
from isogloss.dialects._base import bounds
from isogloss.dialects._call_forms import WriteCall
from isogloss.dialects._conversations import offered
from isogloss.dialects._invoke_calls import InvokeCallScanner, patterns, syntax
from isogloss.dialects._lexicon import Found, spell
from isogloss.dialects._markers import REFUSALS, Markers
from isogloss.dialects._scanner import Prose
from isogloss.dialects._tag_writing import write_call
from isogloss.dialects._told import format_prompt
from isogloss.dialects._turns import TurnsDialect, said
from isogloss.dialects._xtml import CLOSE, END, OPEN, SEP, tags_of, write_block, write_close, write_open
from isogloss.dialects._xtml_turn import block, turn
from isogloss.events import ReasoningDelta
from isogloss.grammar import Term
from isogloss.messages import (
    AssistantMessage,
    Conversation,
    ResponseFormat,
    Tool,
    ToolCall,
    ToolChoice,
    ToolMessage,
)
from isogloss.notations.json import JsonReader
from isogloss.notations.markup import write_declared
from isogloss.prompt import PromptWriter

KINDS: Mapping[str, str | tuple[str, ...]] = {
    "call": f"{OPEN}tools{SEP}",
    "call_close": f"{CLOSE}tools{SEP}",
    "bare_call": f"{OPEN}call",
    "think": f"{OPEN}think{SEP}",
    "think_close": f"{CLOSE}think{SEP}",
    "response": f"{OPEN}response{SEP}",
    "response_close": f"{CLOSE}response{SEP}",
    "turn_end": (END, f"{CLOSE}message{SEP}", f"{OPEN}message"),
    "token": (OPEN, CLOSE, SEP),
    **REFUSALS,
}
_TYPE = re.compile(r'\btype="(\w+)"').search
_TYPES: dict[type, str] = {
    bool: "boolean",
    type(None): "null",
    int: "number",
    float: "number",
    str: "string",
    dict: "object",
}


@lru_cache(maxsize=16)
def _markers(control: frozenset[str]) -> Markers:
    tags = tags_of(control)
    return Markers(
        KINDS,
        special=(OPEN, CLOSE, SEP, END),
        stop=(END,),
        patterns={**patterns(tags), "parameter_close": tags.closing(tags.parameter)},
        beginning=tags.beginning(),
    )


MARKERS = _markers(frozenset())


class KimiK3Scanner(InvokeCallScanner):
    """Scans one turn."""

    framed_by_tokens: ClassVar[bool] = True
    also_in_text: ClassVar[tuple[str, ...]] = ("response", "response_close")

    def __init__(self, tools: Iterable[Tool], starts_in: str, control: frozenset[str]) -> None:
        markers = _markers(control)
        super().__init__(syntax(tags_of(control), markers, control), markers, tools, starts_in, control)
        thinking = Prose(ReasoningDelta, markers.lexicon(("think_close", "response", "turn_end"), control))
        if self._mode is self.reasoning_prose:
            self._mode = thinking
        self.reasoning_prose = thinking
        self._whole_close = regex.compile(tags_of(control).closing("json")).match
        self._message_end = spell(END, control)

    def _on_response(self, found: Found) -> None:
        self._enter(self.text_prose)

    def _on_response_close(self, found: Found) -> None:
        self._enter(self.text_prose)

    def _after_turn(self) -> bool:
        """The end of the message may be written as its closing tag and a token of its own."""
        rest = self._text[self._pos :].lstrip()
        self._pos = len(self._text) - len(rest)
        if len(rest) < len(self._message_end) and self._message_end.startswith(rest) and not self._final:
            return False
        if rest.startswith(self._message_end):
            self._pos += len(self._message_end)
            return True
        return super()._after_turn()

    def says_string(self, found: Found) -> bool | None:
        said = _TYPE(found.match[0])
        return None if said is None else said[1] == "string"

    # -- all arguments as one JSON object

    def _in_call_whole(self, found: Found) -> None:
        self._reader = JsonReader()
        self._state = self._in_whole

    def _in_whole(self) -> bool:
        reader = self._reader
        self._pos, fragment = reader.read(self._text, self._pos)
        if fragment:
            self._delta(fragment, reader.settled)
        if reader.fault:
            self._fault(reader.fault)
            return True
        if reader.done:
            self._separator = ""
            self._state = self._behind_whole
        return reader.done

    def _behind_whole(self) -> bool:
        match = self._whole_close(self._text, self._pos, partial=True)
        if match is not None and match.partial:
            return False
        if match is None:
            self._fault("the arguments were not closed")
        else:
            self._pos = match.end()
            self._state = self._between_parameters
        return True


class KimiK3(TurnsDialect):
    """Typed arguments in XTML."""

    name = "kimi_k3"
    title = "Kimi K3"
    markers = MARKERS
    model_ids = r"kimi.*k-?3"
    templates = r"<\|end_of_msg\|>"
    keeps_reasoning = True

    # -- writing

    def write_beginning(self, writer: PromptWriter, system: str, conversation: Conversation) -> None:
        tools = offered(conversation)
        if tools:
            _write_message(writer, {"role": "system", "type": "tool-declare"}, self.tool_prompt(tools))
        effort = conversation.reasoning_effort
        if effort in ("low", "medium", "high", "max"):
            _write_message(writer, {"role": "system", "type": "thinking-effort"}, f"`thinking_effort={effort}`")
        told = format_prompt(conversation.response_format)
        if told:
            _write_message(writer, {"role": "system", "type": "response-format"}, told)
        if system:
            _write_message(writer, {"role": "system"}, system)

    def write_user(self, writer: PromptWriter, text: str) -> None:
        _write_message(writer, {"role": "user"}, text)

    def write_assistant(
        self, writer: PromptWriter, message: AssistantMessage, reasoning: str | None, tools: Sequence[Tool]
    ) -> None:
        write_open(writer, "message", {"role": "assistant"})
        writer.is_assistant = True
        if reasoning is not None:
            self.write_reasoning(writer, reasoning)
        write_block(writer, "response", said(message))
        if message.tool_calls:
            self.write_calls(writer, message.tool_calls, tools)
        write_close(writer, "message")
        writer.marker(END)
        writer.is_assistant = False

    def write_results_turn(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        self.write_results(writer, results)

    def write_generation_prompt(self, writer: PromptWriter, *, thinks: bool) -> None:
        write_open(writer, "message", {"role": "assistant"})
        write_open(writer, "think" if thinks else "response")

    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        write_open(writer, "tools")
        for index, call in enumerate(calls, 1):
            write_call(writer, self, call, tools, _write_call(index), write_declared)
        write_close(writer, "tools")

    def write_results(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        for index, result in enumerate(results, 1):
            _write_message(writer, {"role": "tool", "tool": result.name, "index": str(index)}, result.text)

    def write_reasoning(self, writer: PromptWriter, text: str) -> None:
        write_block(writer, "think", text)

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> KimiK3Scanner:
        return KimiK3Scanner(tools, starts_in, control)

    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        return block(tools, parallel)

    def constraint(
        self,
        tools: Iterable[Tool] = (),
        tool_choice: ToolChoice | str = "auto",
        response_format: ResponseFormat | None = None,
        *,
        parallel: bool = True,
        reasoning: bool | str = True,
    ) -> Constraint:
        from isogloss.dialects._call_watch import watched

        tools, choice = bounds(tools, response_format), ToolChoice.of(tool_choice)
        constraint = turn(MARKERS, tools, choice, response_format, parallel=parallel, reasoning=reasoning)
        return watched(self, tools, constraint, "reasoning" if reasoning == "open" else "text")


def _write_message(writer: PromptWriter, attributes: Mapping[str, str], text: str) -> None:
    write_open(writer, "message", attributes)
    writer.text(text)
    write_close(writer, "message")
    writer.marker(END)


@lru_cache(maxsize=16)
def _write_call(index: int) -> WriteCall:
    def write(writer: PromptWriter, call: ToolCall, texts: Mapping[str, str]) -> None:
        write_open(writer, "call", {"tool": call.name, "index": str(index)})
        for key, text in texts.items():
            write_open(writer, "argument", {"key": key, "type": _TYPES.get(type(call.arguments[key]), "array")})
            writer.text(text)
            write_close(writer, "argument")
        write_close(writer, "call")

    return write
