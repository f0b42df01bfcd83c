"""Transcripts read, and written in another dialect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from isogloss.dialects import Dialect
from isogloss.errors import ConversationError, RequestError, UnrepresentableError
from isogloss.messages import AssistantMessage, Conversation, Message, Tool, ToolCall, ToolMessage, UserMessage
from isogloss.transcripts._results import read_results


class Loss(msgspec.Struct, frozen=True):
    """Something that the converted transcript does not hold, where it was (a JSON pointer) and why."""

    pointer: str
    reason: str


class Converted(msgspec.Struct, frozen=True):
    """The transcript in the target dialect, ``None`` where it could not be converted, and what was lost."""

    transcript: dict[str, Any] | None
    losses: tuple[Loss, ...] = ()


class ReadTranscript(msgspec.Struct, frozen=True):
    """What a transcript says: reasoning, calls and results as such, the description of tools left out of the texts."""

    conversation: Conversation
    losses: tuple[Loss, ...] = ()


def read_transcript(dialect: Dialect, transcript: Mapping[str, Any]) -> ReadTranscript:
    """The conversation in a transcript with ``messages`` whose markup is ``dialect``'s: to render it as a prompt with a
    loss mask, or to verify it. Raises `ConversationError` for what is no transcript."""
    if not isinstance(transcript.get("messages"), list):
        raise ConversationError("Expected `messages` (an array) in a transcript")
    losses: list[Loss] = []
    tools = _tools(transcript)
    told = dialect.tool_prompt(tools) if tools else ""
    messages: list[Message] = []
    for _, message, said in Converter(dialect, dialect)._read(transcript, tools, losses):
        if isinstance(said, AssistantMessage):
            messages.append(said)
        elif said:
            messages.extend(said)
        else:
            content = str(message.get("content") or "")
            [plain] = Conversation.from_openai({"messages": [{**message, "content": content}]}).messages
            if told and told in content:
                plain = msgspec.structs.replace(plain, text=content.replace(told, "").strip())
            if plain.text or not content:
                messages.append(plain)
    return ReadTranscript(Conversation(tuple(messages), tools), tuple(losses))


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
        output = self.target.render_output(turn, tools)
        starts_in = self.target.starts_in(self.target.render(Conversation((UserMessage(""),), tools)).text)
        self._check_calls(turn, output, tools, "/output", starts_in)
        converted = {**transcript, "output": output}
        if "starts_in" in transcript or starts_in != "text":
            converted["starts_in"] = starts_in
        return converted

    def _messages(self, transcript: Mapping[str, Any], losses: list[Loss]) -> dict[str, Any]:
        tools = _tools(transcript)
        messages: list[dict[str, Any]] = []
        results: list[ToolMessage] = []
        for pointer, message, said in self._read(transcript, tools, losses):
            if isinstance(said, list) and said:
                results += said
                continue
            self._write_results(results, messages, pointer, losses)
            if isinstance(said, AssistantMessage):
                written = self._written(said, tools)
                self._check_calls(said, written, tools, f"{pointer}/content")
                messages.append({"role": "assistant", "content": written})
            elif message.get("role") in ("system", "developer"):
                messages.append({**message, "content": self._instructions(message.get("content") or "", tools)})
            else:
                messages.append(dict(message))
        self._write_results(results, messages, "/messages", losses)
        return {**transcript, "messages": messages}

    def _read(
        self, transcript: Mapping[str, Any], tools: Sequence[Tool], losses: list[Loss]
    ) -> Iterator[tuple[str, Mapping[str, Any], AssistantMessage | list[ToolMessage]]]:
        """Each message with where it is and what it says: the assistant's turn, results, or (an empty list) only what
        stands there."""
        pending: list[ToolCall] = []
        for position, message in enumerate(transcript["messages"]):
            pointer = f"/messages/{position}"
            if not isinstance(message, Mapping):
                raise ConversationError(f"Expected `object`, got `{type(message).__name__}`", pointer=pointer)
            role, content = message.get("role"), message.get("content") or ""
            if not isinstance(content, str):
                raise ConversationError("Expected `str`", pointer=f"{pointer}/content")
            results = self._results(role, message, content, pending)
            if role == "assistant":
                turn = self._assistant(message, content, tools, pointer, losses)
                pending = list(turn.tool_calls)
                yield pointer, message, turn
            else:
                yield pointer, message, results

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

    def _check_calls(
        self, turn: AssistantMessage, written: str, tools: Sequence[Tool], pointer: str, starts_in: str = "text"
    ) -> None:
        """Raise where the text of the turn hides its calls (in a code fence, say) or is a call itself."""
        found = self.target.parse(written, tools, starts_in=starts_in)
        if [(call.name, call.arguments) for call in found.tool_calls] != [
            (call.name, call.arguments) for call in turn.tool_calls
        ]:
            raise UnrepresentableError(f"With this text, {self.target.name} would read other calls", pointer=pointer)

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


def _assigned(result: ToolMessage, pending: list[ToolCall]) -> ToolMessage:
    """The result with the id and the name of the call that it answers."""
    for call in pending:
        if result.call_id == call.id or not (result.call_id or result.name) or result.name == call.name:
            pending.remove(call)
            return ToolMessage(call.id, call.name, result.text, result.is_error)
    return result


def _tools(transcript: Mapping[str, Any]) -> tuple[Tool, ...]:
    tools = transcript.get("tools") or ()
    if not isinstance(tools, Sequence) or isinstance(tools, str):
        raise ConversationError(f"Expected `array`, got `{type(tools).__name__}`", pointer="/tools")
    try:
        return tuple(Tool.from_openai(tool) for tool in tools)
    except RequestError as error:
        raise ConversationError(error.message, pointer=f"/tools{error.pointer or ''}") from None


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
