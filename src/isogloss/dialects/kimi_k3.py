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

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from isogloss.constraints.constraint import Constraint
from isogloss.dialects._base import bounds
from isogloss.dialects._call_forms import WriteCall
from isogloss.dialects._conversations import offered
from isogloss.dialects._invoke_calls import patterns
from isogloss.dialects._markers import REFUSALS, Markers
from isogloss.dialects._tag_writing import write_call
from isogloss.dialects._told import format_prompt
from isogloss.dialects._turns import TurnsDialect, said
from isogloss.dialects._xtml import CLOSE, END, OPEN, SEP, tags_of, write_block, write_close, write_open
from isogloss.dialects._xtml_calls import XtmlCallScanner
from isogloss.dialects._xtml_turn import block, turn
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

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> XtmlCallScanner:
        return XtmlCallScanner(_markers(control), tools, starts_in, control)

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
