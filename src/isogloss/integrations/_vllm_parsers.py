"""What vLLM's parsers do, by the scanner of a dialect. The classes are completed with vLLM's own as their bases."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from isogloss.events import (
    Event,
    Malformed,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallStart,
    collect,
)
from isogloss.messages import Tool

if TYPE_CHECKING:
    from isogloss.dialects import Dialect
    from isogloss.dialects._scanner import StreamScanner

_LONGEST_MARKER = 32
"""Tokens. A marker that is text may be as many."""


class RawEvents:
    """A scanner's events with the text of the output that each covers."""

    def __init__(self, scanner: StreamScanner) -> None:
        self._scanner = scanner
        self._raw = ""
        self._start = 0

    def feed(self, text: str) -> list[tuple[Event, str]]:
        self._raw += text
        return self._covered(self._scanner.feed(text))

    def finish(self) -> list[tuple[Event, str]]:
        return self._covered(self._scanner.finish())

    @property
    def unsettled(self) -> str:
        """The text that no event covers yet."""
        return self._raw

    def _covered(self, events: Iterable[Event]) -> list[tuple[Event, str]]:
        covered = [
            (event, self._raw[event.span.start - self._start : event.span.end - self._start]) for event in events
        ]
        if covered:
            end = covered[-1][0].span.end
            self._raw = self._raw[end - self._start :]
            self._start = end
        return covered


class DialectToolParser:
    """Reads calls and text, and the reasoning that comes among them."""

    dialect: ClassVar[Dialect]
    protocol: ClassVar[Any]
    """The module of vLLM's messages."""
    engine_based_streaming = True
    supports_required_and_named = False
    skip_reasoning_parsing = False
    """Set by vLLM where no reasoning parser is at work: then reasoning is text, as the model wrote it."""
    tools: list[Any]
    prev_tool_call_arr: list[dict[str, Any]]
    streamed_args_for_tool: list[str]

    def __init__(self, tokenizer: Any, tools: list[Any] | None = None, **more: Any) -> None:
        super().__init__(tokenizer, tools)  # type: ignore[call-arg]
        self._events: RawEvents | None = None

    def adjust_request(self, request: Any) -> Any:
        """Control tokens must stay in the text: they are what calls are made of."""
        return _with_control_tokens(request)

    def extract_tool_calls(self, model_output: str, request: Any) -> Any:
        events = self._new_events(model_output)
        covered = events.feed(model_output) + events.finish()
        message = collect([event for event, _ in covered])
        calls = [
            self.protocol.ToolCall(
                id=call.id,
                function=self.protocol.FunctionCall(
                    id=call.id, name=call.name, arguments=json.dumps(call.arguments, ensure_ascii=False)
                ),
            )
            for call in message.tool_calls
        ]
        content = "".join(self._visible(covered))
        return self.protocol.ExtractedToolCallInformation(
            tools_called=bool(calls), tool_calls=calls, content=content or None
        )

    def extract_tool_calls_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
        request: Any,
    ) -> Any:
        if self._events is None:
            self._events = self._new_events(delta_text)
        return self._delta(self._events.feed(delta_text))

    def finish_streaming(self) -> Any:
        return None if self._events is None else self._delta(self._events.finish())

    def _new_events(self, beginning: str) -> RawEvents:
        """What a reasoning parser passes on begins with the marker that closes reasoning, and its white space."""
        tools = [Tool.from_openai(tool.model_dump(exclude_none=True)) for tool in self.tools]
        closers = self.dialect.markers.kinds.get("think_close", ())
        starts_in = "reasoning" if beginning.lstrip().startswith(closers) else "text"
        return RawEvents(self.dialect.scanner(tools, starts_in=starts_in))

    def _delta(self, covered: list[tuple[Event, str]]) -> Any:
        reasoning = (
            ""
            if self.skip_reasoning_parsing
            else "".join([event.text for event, _ in covered if isinstance(event, ReasoningDelta)])
        )
        content = "".join(self._visible(covered))
        calls = [call for event, _ in covered for call in self._call_delta(event)]
        if not (reasoning or content or calls):
            return None
        return self.protocol.DeltaMessage(content=content or None, reasoning=reasoning or None, tool_calls=calls)

    def _visible(self, covered: Iterable[tuple[Event, str]]) -> Iterator[str]:
        """Text, and what looked like a call and was none: vLLM has no other place for it."""
        for event, raw in covered:
            if isinstance(event, (TextDelta, RefusalDelta)):
                yield event.text
            elif isinstance(event, ReasoningDelta) and self.skip_reasoning_parsing:
                yield raw
            elif isinstance(event, Malformed) and event.index is None:
                yield event.raw

    def _call_delta(self, event: Event) -> Iterator[Any]:
        protocol = self.protocol
        if isinstance(event, ToolCallStart):
            self.prev_tool_call_arr.append({"name": event.name, "arguments": ""})
            self.streamed_args_for_tool.append("")
            function = protocol.DeltaFunctionCall(name=event.name, arguments="")
            yield protocol.DeltaToolCall(index=event.index, id=event.id, type="function", function=function)
        elif isinstance(event, ToolCallDelta) and event.arguments:
            function = protocol.DeltaFunctionCall(arguments=event.arguments)
            yield protocol.DeltaToolCall(index=event.index, function=function)


class DialectReasoningParser:
    """Reads reasoning up to where the turn's text or calls begin, and passes on the rest as the model wrote it."""

    dialect: ClassVar[Dialect]
    protocol: ClassVar[Any]
    engine_based_streaming = True

    def __init__(self, tokenizer: Any, *args: Any, **more: Any) -> None:
        super().__init__(tokenizer, *args, **more)  # type: ignore[call-arg]
        self._tokenizer = tokenizer
        self._starts_in = "text"
        self._events: RawEvents | None = None
        self._has_ended = False

    @property
    def reasoning_start_str(self) -> str | None:
        return next(iter(self.dialect.markers.kinds.get("think", ())), None)

    @property
    def reasoning_end_str(self) -> str | None:
        return next(iter(self.dialect.markers.kinds.get("think_close", ())), None)

    def adjust_request(self, request: Any) -> Any:
        """Control tokens must stay in the text: they may be what reasoning is framed by."""
        return _with_control_tokens(request)

    def adjust_initial_state_from_prompt(self, prompt_token_ids: Sequence[int]) -> None:
        self._starts_in = self.dialect.starts_in(self._tail(prompt_token_ids))

    def is_reasoning_end(self, input_ids: Sequence[int]) -> bool:
        """Whether these ids end behind reasoning that was closed."""
        tail = self._tail(input_ids)
        return self.dialect.starts_in(tail) == "text" and self._closes(tail)

    def is_reasoning_end_streaming(self, input_ids: Sequence[int], delta_ids: Iterable[int]) -> bool:
        count = len(list(delta_ids)) + _LONGEST_MARKER
        return self._closes(self._tail(input_ids, count))

    def has_engine_confirmed_reasoning_end(self) -> bool:
        return self._has_ended

    def extract_content_ids(self, input_ids: list[int]) -> list[int]:
        """Those behind the end of reasoning; all, where it does not end in them."""
        for position in range(1, len(input_ids) + 1):
            if self._closes(self._tail(input_ids[:position])):
                return input_ids[position:]
        return input_ids

    def extract_reasoning(self, model_output: str, request: Any) -> tuple[str | None, str | None]:
        """A turn that closes reasoning which it did not open began in it: the prompt had opened it."""
        events = RawEvents(self.dialect.scanner(starts_in=self._began_in(model_output)))
        reasoning: list[str] = []
        rest: list[str] = []
        for event, raw in events.feed(model_output) + events.finish():
            if isinstance(event, ReasoningDelta):
                reasoning.append(event.text)
            elif isinstance(event, TextDelta):
                rest.append(event.text)
            else:
                rest.append(raw)
        return "".join(reasoning) or None, "".join(rest) or None

    def extract_reasoning_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
    ) -> Any:
        if self._events is None:
            self._events = RawEvents(self.dialect.scanner(starts_in=self._starts_in))
        return self._delta(self._events.feed(delta_text), self._events.unsettled)

    def finish_streaming(self) -> Any:
        """At the end of reasoning everything has been passed on; at the end of the output the rest is settled."""
        return None if self._events is None or self._has_ended else self._delta(self._events.finish(), "")

    def _delta(self, covered: list[tuple[Event, str]], unsettled: str) -> Any:
        reasoning: list[str] = []
        rest: list[str] = []
        for event, raw in covered:
            if isinstance(event, ReasoningDelta) and not self._has_ended:
                reasoning.append(event.text)
            elif raw:
                self._has_ended = True
                rest.append(raw)
        if self._has_ended:
            rest.append(unsettled)
        if not (reasoning or rest):
            return None
        return self.protocol.DeltaMessage(reasoning="".join(reasoning) or None, content="".join(rest) or None)

    def _began_in(self, output: str) -> str:
        kinds = self.dialect.markers.kinds
        closed = _first(output, kinds.get("think_close", ()))
        opened = _first(output, kinds.get("think", ()))
        return "reasoning" if closed is not None and (opened is None or closed < opened) else "text"

    def _closes(self, text: str) -> bool:
        kinds = self.dialect.markers.kinds
        closed = max((text.rfind(marker) for marker in kinds.get("think_close", ())), default=-1)
        opened = max((text.rfind(marker) for marker in kinds.get("think", ())), default=-1)
        return closed > opened

    def _tail(self, ids: Sequence[int], count: int = _LONGEST_MARKER) -> str:
        text: str = self._tokenizer.decode(list(ids[-count:]))
        return text


def _with_control_tokens(request: Any) -> Any:
    request.skip_special_tokens = False
    if hasattr(request, "spaces_between_special_tokens"):
        request.spaces_between_special_tokens = False
    return request


def _first(text: str, markers: Iterable[str]) -> int | None:
    return min((place for place in (text.find(marker) for marker in markers) if place >= 0), default=None)
