"""harmony: messages with a channel and a recipient, framed by control tokens (gpt-oss).

    turn      = { message }                                       the first one without its "<|start|>assistant"
    message   = "<|start|>assistant" head "<|message|>" text end
    head      = "<|channel|>" channel [ " to=" recipient ] [ " " type ]
    channel   = "analysis" (reasoning) | "commentary" (calls, and what is said before them) | "final" (the answer)
    recipient = "functions." name | built-in tool
    type      = "<|constrain|>json" | "code"
    end       = "<|end|>" | "<|call|>" (after a call) | "<|return|>" (after the answer)
    result    = "<|start|>" recipient " to=assistant<|channel|>commentary<|message|>" text "<|end|>"

Sample (one line, broken here)::

    <|channel|>analysis<|message|>I need the weather.<|end|><|start|>assistant
    <|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Paris"}<|call|>

Tools named ``python`` (a custom one) and ``browser.search``, ``browser.open``, ``browser.find`` are the built-in ones:
the system message describes them in the words that models were trained on, and calls to them go to the analysis
channel. The input of a custom tool is its message's text as it is: a call of it has the one argument ``input``.

Source: the guide and the renderer of openai/harmony.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from isogloss.dialects._base import Dialect, bounds
from isogloss.dialects._conversations import last_user_position, offered
from isogloss.dialects._harmony_builtins import PYTHON, Function, Namespace, builtin_namespaces, is_builtin
from isogloss.dialects._harmony_calls import FUNCTIONS, INPUT
from isogloss.dialects._harmony_markers import CALL, CHANNEL, CONSTRAIN, END, MARKERS, MESSAGE, RETURN, START
from isogloss.dialects._harmony_prompt import (
    EFFORTS,
    IDENTITY,
    KNOWLEDGE_CUTOFF,
    developer_text,
    system_text,
    tools_text,
)
from isogloss.dialects._harmony_scanner import HarmonyScanner
from isogloss.dialects._harmony_turn import harmony_turn
from isogloss.dialects._markers import REFUSAL, REFUSAL_CLOSE
from isogloss.errors import UnrepresentableError
from isogloss.messages import (
    AssistantMessage,
    Conversation,
    DeveloperMessage,
    Message,
    ResponseFormat,
    SystemMessage,
    Tool,
    ToolCall,
    ToolChoice,
    ToolMessage,
    UserMessage,
)
from isogloss.notations.json import write as write_json
from isogloss.prompt import Prompt, PromptWriter, Segment

if TYPE_CHECKING:
    from isogloss.constraints import Constraint

AS_IT_IS = "Write the input as it is, not as JSON."

_MARKER = re.compile("|".join(map(re.escape, sorted(MARKERS.special))))
_NAME = re.compile(r"[^\s<]+").fullmatch


class _Head(NamedTuple):
    """What stands between a message's start and its text."""

    who: str
    channel: str = ""
    recipient: str = ""
    content_type: str = ""


class Harmony(Dialect):
    """Channels and recipients.

    The system message names the model (``identity``), its ``knowledge_cutoff`` and the ``current_date`` (ISO 8601, none
    by default); ``None`` leaves a line out. ``recipient_first`` writes the recipient of a call in front of the channel,
    as the templates of some engines do; the models themselves write it behind.
    """

    name = "harmony"
    title = "gpt-oss"
    markers = MARKERS
    model_ids = r"gpt-?oss"
    templates = r"<\|start\|>[\s\S]*<\|channel\|>"
    renders_as_trained = True

    def __init__(
        self,
        *,
        identity: str | None = IDENTITY,
        knowledge_cutoff: str | None = KNOWLEDGE_CUTOFF,
        current_date: str | None = None,
        recipient_first: bool = False,
    ) -> None:
        self.identity = identity
        self.knowledge_cutoff = knowledge_cutoff
        self.current_date = current_date
        self.recipient_first = recipient_first

    # -- conversations

    def render_for_training(self, conversation: Conversation) -> Prompt:
        """The conversation with its last answer ended as the model must end it, by ``<|return|>``."""
        segments = list(self.render(conversation, generation_prompt=False).segments)
        last = conversation.messages[-1] if conversation.messages else None
        if isinstance(last, AssistantMessage) and segments[-1].text == END and not last.tool_calls:
            segments[-1] = Segment(RETURN, True, segments[-1].message, True)
        return Prompt(tuple(segments))

    def write_conversation(self, writer: PromptWriter, conversation: Conversation, generation_prompt: bool) -> None:
        messages = conversation.messages
        leading = _leading_instructions(messages)
        self._write_opening(writer, conversation, [message.text for message in messages[:leading]])
        tools = {tool.name: tool for tool in conversation.tools}
        open_turn = last_user_position(messages)
        for position in range(leading, len(messages)):
            message = messages[position]
            writer.message = position
            if isinstance(message, AssistantMessage):
                self._write_turn(writer, message, tools, keep_reasoning=position > open_turn)
            elif isinstance(message, ToolMessage):
                self._write_result(writer, message, tools.get(message.name))
            elif isinstance(message, UserMessage):
                self._write_message(writer, _Head("user"), message.text)
            else:
                self._write_message(writer, _Head("developer"), developer_text(message.text))
        writer.message = -1
        if generation_prompt:
            writer.marker(START)
            writer.text("assistant")

    def starts_in(self, prompt: str) -> str:
        return "reasoning" if prompt.endswith(f"{CHANNEL}analysis{MESSAGE}") else "text"

    def _write_opening(self, writer: PromptWriter, conversation: Conversation, instructions: list[str]) -> None:
        tools = offered(conversation)
        functions = [_function(tool) for tool in tools if not is_builtin(tool.name, tool)]
        system = system_text(
            identity=self.identity,
            knowledge_cutoff=self.knowledge_cutoff,
            current_date=self.current_date,
            effort=EFFORTS.get(conversation.reasoning_effort or "medium", "medium"),
            tools=tools_text(builtin_namespaces(tools)),
            has_functions=bool(functions),
        )
        self._write_message(writer, _Head("system"), system)
        told = developer_text(
            "\n\n".join([text for text in instructions if text]) or None,
            tools_text([Namespace("functions", None, functions)] if functions else []),
            conversation.response_format,
        )
        if told:
            writer.message = len(instructions) - 1
            self._write_message(writer, _Head("developer"), told)

    def _write_turn(
        self, writer: PromptWriter, message: AssistantMessage, tools: dict[str, Tool], *, keep_reasoning: bool
    ) -> None:
        """The messages of one turn. Its first ``<|start|>assistant`` is the prompt's, the rest is the model's."""
        turn = PromptWriter()
        if message.reasoning and keep_reasoning:
            self.write_reasoning(turn, message.reasoning)
        said = message.text or (f"{REFUSAL}{message.refusal}{REFUSAL_CLOSE}" if message.refusal else "")
        if said and message.tool_calls:
            self._write_message(turn, _Head("assistant", "commentary"), said)
        elif said or not (message.tool_calls or turn.prompt().segments):
            self._write_message(turn, _Head("assistant", "final"), said)
        self.write_calls(turn, message.tool_calls, tuple(tools.values()))
        segments = turn.prompt().segments
        writer.extend(segments[:2])
        writer.is_assistant = True
        writer.extend(segments[2:])
        writer.is_assistant = False

    # -- pieces

    def write_reasoning(self, writer: PromptWriter, text: str) -> None:
        self._write_message(writer, _Head("assistant", "analysis"), text)

    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        known = {tool.name: tool for tool in tools}
        for call in calls:
            tool = known.get(call.name)
            built_in = is_builtin(call.name, tool)
            takes_text = call.name == PYTHON.name if built_in else tool is not None and tool.is_custom
            text = _free_text(call) if takes_text else None
            is_code = text is not None or (built_in and not takes_text)
            head = _Head(
                "assistant",
                "analysis" if built_in else "commentary",
                _recipient(call.name, tool),
                "code" if is_code else f"{CONSTRAIN}json",
            )
            self._write_message(writer, head, write_json(call.arguments) if text is None else text, CALL)

    def write_results(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        for result in results:
            self._write_result(writer, result, None)

    def _write_result(self, writer: PromptWriter, result: ToolMessage, tool: Tool | None) -> None:
        channel = "analysis" if is_builtin(result.name, tool) else "commentary"
        head = _Head(f"{_recipient(result.name, tool)} to=assistant", channel)
        self._write_message(writer, head, result.text)

    def _write_message(self, writer: PromptWriter, head: _Head, text: str, end: str = END) -> None:
        to = f" to={head.recipient}" if head.recipient else ""
        writer.marker(START)
        writer.text(head.who + (to if self.recipient_first else ""))
        if head.channel:
            writer.marker(CHANNEL)
            writer.text(head.channel + ("" if self.recipient_first else to))
        if head.content_type.startswith(CONSTRAIN):
            writer.text(" ")
            writer.marker(CONSTRAIN)
            writer.text(head.content_type.removeprefix(CONSTRAIN))
        elif head.content_type:
            writer.text(f" {head.content_type}")
        writer.marker(MESSAGE)
        writer.text(text)
        writer.marker(end)

    # -- reading

    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> HarmonyScanner:
        return HarmonyScanner(tools, starts_in, control)

    def constraint(
        self,
        tools: Iterable[Tool] = (),
        tool_choice: ToolChoice | str = "auto",
        response_format: ResponseFormat | None = None,
        *,
        parallel: bool = True,
        reasoning: bool | str = True,
    ) -> Constraint:
        choice = ToolChoice.of(tool_choice)
        tools = bounds(tools, response_format)
        return harmony_turn(tools, choice, response_format, parallel=parallel, reasoning=reasoning)


def _leading_instructions(messages: Sequence[Message]) -> int:
    """How many messages in front are instructions, which one developer message holds together."""
    count = 0
    while count < len(messages) and isinstance(messages[count], SystemMessage | DeveloperMessage):
        count += 1
    return count


def _function(tool: Tool) -> Function:
    """A tool as the prompt lists it. What a custom tool takes is a string: its message as it is."""
    if not tool.is_custom:
        return Function(tool.name, tool.description, tool.parameters)
    described = "\n".join([text for text in (tool.description, AS_IT_IS) if text])
    return Function(tool.name, described, {"type": "string"})


def _free_text(call: ToolCall) -> str | None:
    """The input of a call as it is; ``None`` where only JSON can carry it."""
    text = call.arguments.get(INPUT)
    carries = isinstance(text, str) and call.arguments.keys() == {INPUT} and _MARKER.search(text) is None
    return text if carries else None


def _recipient(name: str, tool: Tool | None) -> str:
    if _NAME(name) is None:
        raise UnrepresentableError(f"A recipient cannot carry the name {name!r}: it has white space or `<` in it")
    return name if is_builtin(name, tool) else FUNCTIONS + name
