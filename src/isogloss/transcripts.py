"""Transcripts from one dialect to another.

A transcript is a JSON object in one of two forms:

- ``{"output": text, "tools": [...], "starts_in": "reasoning"}``: one turn of a model, raw. ``tools`` decide how values
  are typed, ``starts_in`` says where the prompt left off; both may be missing.
- ``{"messages": [...], "tools": [...]}``: a conversation in plain messages, calls and results written into the text,
  as `Dialect.inband` makes it. Messages with ``tool_calls`` and of role ``tool``, as the Chat Completions API has them,
  are taken too.

Other members are kept as they are. Nothing is lost silently: what the target cannot carry, and what the source wrote
that is no call, is a `Loss`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from isogloss.dialects import Dialect
from isogloss.errors import ConversationError, RequestError, UnrepresentableError
from isogloss.messages import AssistantMessage, Conversation, Tool, ToolCall, ToolMessage, UserMessage


class Loss(msgspec.Struct, frozen=True):
    """Something that the converted transcript does not hold, where it was (a JSON pointer) and why."""

    pointer: str
    reason: str


class Converted(msgspec.Struct, frozen=True):
    """The transcript in the target dialect, ``None`` where it could not be converted, and what was lost."""

    transcript: dict[str, Any] | None
    losses: tuple[Loss, ...] = ()


class Converter:
    """Converts transcripts of one dialect to another."""

    def __init__(self, source: Dialect, target: Dialect) -> None:
        self.source = source
        self.target = target

    def convert(self, transcript: Mapping[str, Any]) -> Converted:
        """One transcript. Raises `ConversationError` for what is no transcript."""
        losses: list[Loss] = []
        try:
            if isinstance(transcript.get("output"), str):
                return Converted(self._output(transcript, losses), tuple(losses))
            if isinstance(transcript.get("messages"), list):
                return Converted(self._messages(transcript, losses), tuple(losses))
        except UnrepresentableError as error:
            return Converted(None, (*losses, Loss(error.pointer or "", error.message)))
        raise ConversationError("Expected `output` (a string) or `messages` (an array) in a transcript")

    def _output(self, transcript: Mapping[str, Any], losses: list[Loss]) -> dict[str, Any]:
        tools = _tools(transcript)
        turn = self._turn(transcript["output"], tools, "/output", losses, transcript.get("starts_in", "text"))
        converted = {**transcript, "output": self.target.render_output(turn, tools)}
        prompt = self.target.render(Conversation((UserMessage(""),), tools)).text
        if "starts_in" in transcript or self.target.starts_in(prompt) != "text":
            converted["starts_in"] = self.target.starts_in(prompt)
        return converted

    def _messages(self, transcript: Mapping[str, Any], losses: list[Loss]) -> dict[str, Any]:
        tools = _tools(transcript)
        pending: list[ToolCall] = []
        messages: list[dict[str, Any]] = []
        results: list[ToolMessage] = []
        for position, message in enumerate(transcript["messages"]):
            pointer = f"/messages/{position}"
            if not isinstance(message, Mapping):
                raise ConversationError(f"Expected `object`, got `{type(message).__name__}`", pointer=pointer)
            role, content = message.get("role"), message.get("content") or ""
            if not isinstance(content, str):
                raise ConversationError("Expected `str`", pointer=f"{pointer}/content")
            found = self._results(role, message, content, pending)
            if found:
                results += found
                continue
            self._write_results(results, messages, pointer, losses)
            if role == "assistant":
                turn = self._assistant(message, content, tools, pointer, losses)
                pending = list(turn.tool_calls)
                messages.append({"role": "assistant", "content": self._written(turn, tools)})
            elif role in ("system", "developer"):
                messages.append({**message, "content": self._instructions(content, tools)})
            else:
                messages.append(dict(message))
        self._write_results(results, messages, "/messages", losses)
        return {**transcript, "messages": messages}

    def _assistant(
        self, message: Mapping[str, Any], content: str, tools: Sequence[Tool], pointer: str, losses: list[Loss]
    ) -> AssistantMessage:
        turn = self._turn(content, tools, f"{pointer}/content", losses)
        if turn.tool_calls:  # the line break between text and calls, where the format does not count it as markup
            turn = msgspec.structs.replace(turn, text=turn.text.removesuffix("\n"))
        if not message.get("tool_calls") and not message.get("reasoning_content"):
            return turn
        told = Conversation.from_openai({"messages": [{"role": "user", "content": ""}, message]}).messages[1]
        assert isinstance(told, AssistantMessage)
        reasoning = "\n".join([text for text in (told.reasoning, turn.reasoning) if text])
        calls = (*turn.tool_calls, *told.tool_calls)
        return AssistantMessage(turn.text, reasoning, turn.refusal or told.refusal, calls)

    def _written(self, turn: AssistantMessage, tools: Sequence[Tool]) -> str:
        """A turn as a plain message holds it: the pieces, without the frame of the family's own prompts."""
        said = turn.text
        if turn.refusal:
            kinds = self.target.markers.kinds
            said = f"{kinds['refusal'][0]}{turn.refusal}{kinds['refusal_close'][0]}"
        calls = self.target.render_calls(turn.tool_calls, tools)
        visible = "\n".join([text for text in (said, calls) if text])
        return self.target.render_reasoning(turn.reasoning) + visible

    def _turn(
        self, output: str, tools: Sequence[Tool], pointer: str, losses: list[Loss], starts_in: str = "text"
    ) -> AssistantMessage:
        turn = self.source.parse(output, tools, starts_in=starts_in)
        losses.extend(Loss(pointer, f"{part.reason}: {_shown(part.raw)}") for part in turn.malformed)
        return turn

    def _results(
        self, role: object, message: Mapping[str, Any], content: str, pending: list[ToolCall]
    ) -> list[ToolMessage]:
        """The results that a message reports, if that is what it is. What it does not name is of the ``pending`` calls,
        in their order."""
        if role == "tool":
            call_id = str(message.get("tool_call_id", ""))
            results = [ToolMessage(call_id, str(message.get("name") or ""), content)]
        else:
            results = read_results(self.source, content, len(pending)) if role == "user" else []
        return [_assigned(result, pending) for result in results]

    def _write_results(
        self, results: list[ToolMessage], messages: list[dict[str, Any]], pointer: str, losses: list[Loss]
    ) -> None:
        if not results:
            return
        written = self.target.render_results(results)
        if any(result.is_error for result in results):
            plain = [msgspec.structs.replace(result, is_error=False) for result in results]
            if self.target.render_results(plain) == written:
                losses.append(
                    Loss(pointer, f"{self.target.name} does not tell a failed call's result from a good one's")
                )
        messages.append({"role": "user", "content": written})
        results.clear()

    def _instructions(self, text: str, tools: Sequence[Tool]) -> str:
        """A system text in which the source's description of tools gives way to the target's."""
        told = self.source.tool_prompt(tools) if tools else ""
        return text.replace(told, self.target.tool_prompt(tools)) if told else text


class _Results(msgspec.Struct, frozen=True):
    """How a dialect writes results, found out from what its renderer makes of stand-ins."""

    one: re.Pattern[str]
    run: re.Pattern[str]
    is_framed: bool
    """Whether results can be told from any other text."""
    between: str
    """What stands between two of them."""
    is_escaped: bool
    """Whether their text is the inside of a JSON string."""


def read_results(dialect: Dialect, text: str, expected: int = 0) -> list[ToolMessage]:
    """The results that `Dialect.render_results` wrote as ``text``; an empty list where it is something else.

    Where the format puts nothing around results, a text is ``expected`` of them if it has as many lines (or one is
    expected), and none without any being expected.
    """
    written = _results_of(dialect)
    if not written.is_framed:
        lines = [text] if expected == 1 else text.split(written.between)
        return [ToolMessage("", "", line) for line in lines] if expected and len(lines) == expected else []
    if written.run.fullmatch(text) is None:
        return []
    return [_result(match, is_escaped=written.is_escaped) for match in written.one.finditer(text)]


def _result(match: re.Match[str], *, is_escaped: bool) -> ToolMessage:
    groups = match.groupdict()
    is_error = match["text"] is None
    text: str = match["error_text"] if is_error else match["text"]
    if is_escaped:
        text = json.loads(f'"{text}"')
    name = groups.get("error_name") if is_error else groups.get("name")
    return ToolMessage(groups.get("id") or "", name or "", text, is_error)


@lru_cache(maxsize=64)
def _results_of(dialect: Dialect) -> _Results:
    one, other = (ToolMessage(f"IDX{n}", f"NAMEX{n}", f"TEXTX{n}") for n in (1, 2))
    single, both = dialect.render_results([one]), dialect.render_results([one, other])
    start, end = _frame(single, both)
    body = single[len(start) : len(single) - len(end)]
    between = both[len(start) + len(body) : len(both) - len(end) - len(body)]
    body = _counted(body, both[len(both) - len(end) - len(body) : len(both) - len(end)])
    escaped = "\\n" in dialect.render_results([msgspec.structs.replace(one, text="a\nb")])
    failed = dialect.render_results([msgspec.structs.replace(one, is_error=True)])
    text = r'(?:[^"\\]|\\.)*' if escaped else ".*?"
    pattern = _pattern(body, text)
    if failed != single:
        pattern += "|" + _pattern(failed[len(start) : len(failed) - len(end)], text, "error_")
    plain = re.sub(r"\(\?P<\w+>", "(?:", re.sub(r"\(\?P=\w+\)", r"[^\\n]*?", pattern))
    run = rf"{re.escape(start)}(?:{plain})(?:{re.escape(between)}(?:{plain}))*{re.escape(end)}"
    is_framed = single != one.text
    return _Results(re.compile(pattern, re.DOTALL), re.compile(run, re.DOTALL), is_framed, between, escaped)


def _frame(single: str, both: str) -> tuple[str, str]:
    """What stands around a run of results, once, however many there are: the longest ends that both renders share and
    that hold nothing of a result."""
    first = min(single.find(word) for word in ("IDX1", "NAMEX1", "TEXTX1") if word in single)
    second = min(both.find(word) for word in ("IDX2", "NAMEX2", "TEXTX2") if word in both)
    lead = single[:first]
    opener = _common_suffix(lead, both[:second])
    closing = _common_suffix(single, both.replace("X2", "X1"))
    last = max(single.rfind(word) + len(word) for word in ("IDX1", "NAMEX1", "TEXTX1") if word in single)
    tail = single[last:]
    before_second = both[: second - len(opener)] if opener else both[:second]
    closer = _common_prefix(tail, before_second[before_second.rfind("X1") + 2 :])
    return lead[: len(lead) - len(opener)], tail[len(closer) :] if len(closing) >= len(tail) else ""


def _common_prefix(one: str, other: str) -> str:
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return one[:length]


def _common_suffix(one: str, other: str) -> str:
    return _common_prefix(one[::-1], other[::-1])[::-1]


def _counted(first: str, second: str) -> str:
    """The text of a first result with a stand-in for what only counts the results."""
    second = second.replace("X2", "X1")
    return "".join([a if a == b or not a.isdecimal() else "COUNT" for a, b in zip(first, second, strict=True)])


def _pattern(body: str, text: str, prefix: str = "") -> str:
    pattern = re.escape(body)
    for word, group, content in (
        ("COUNT", f"{prefix}count", r"\d+"),
        ("IDX1", f"{prefix}id", r"[^\n]*?"),
        ("NAMEX1", f"{prefix}name", r"[^\n]*?"),
        ("TEXTX1", f"{prefix}text", text),
    ):
        pattern = pattern.replace(word, f"(?P<{group}>{content})", 1).replace(word, f"(?P={group})")
    return pattern


def _assigned(result: ToolMessage, pending: list[ToolCall]) -> ToolMessage:
    """The result with the id and the name of the call that it answers."""
    for call in pending:
        if result.call_id == call.id or not (result.call_id or result.name) or result.name == call.name:
            pending.remove(call)
            return ToolMessage(call.id, call.name, result.text, result.is_error)
    return result


def _tools(transcript: Mapping[str, Any]) -> tuple[Tool, ...]:
    tools = transcript.get("tools") or ()
    try:
        return tuple(Tool.from_openai(tool) for tool in tools)
    except RequestError as error:
        raise ConversationError(error.message, pointer=f"/tools{error.pointer or ''}") from None


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
