"""What a dialect is, and what all dialects do alike on top of their own pieces.

A dialect's module gives: its ``name`` and `Markers`; how calls, results, reasoning and turns are written
(``write_...``); its scanner; the grammar of its calls. From these this base makes everything else.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any, ClassVar

from isogloss.checks import expect, expect_all
from isogloss.dialects._conversations import instructions, offered, runs
from isogloss.dialects._enclosing import enclose
from isogloss.dialects._markers import Markers
from isogloss.dialects._told import catalogue_entry, format_prompt, paragraphs
from isogloss.errors import ConversationError
from isogloss.events import Event, collect
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
from isogloss.prompt import Prompt, PromptWriter

if TYPE_CHECKING:
    from isogloss.constraints import Constraint, Term
    from isogloss.dialects._scanner import StreamScanner
    from isogloss.tokenizers import Tokenizer


class Dialect(ABC):
    """One family's way of writing conversations. Stateless; one instance serves everybody."""

    name: ClassVar[str]
    title: ClassVar[str]
    """One line that says whose dialect it is."""
    markers: ClassVar[Markers]
    model_ids: ClassVar[str] = r"(?!)"
    """Regular expression, searched in lower case, for the ids of models trained on this dialect."""
    templates: ClassVar[str] = r"(?!)"
    """Regular expression, searched in the text of a chat template, for templates that speak this dialect."""
    renders_as_trained: ClassVar[bool] = False
    """Whether models were trained on what `render` writes, and their chat templates only come near it."""
    keeps_reasoning: ClassVar[bool] = False
    """Whether reasoning of turns before the last user message stays in the prompt."""

    # -- what a dialect's module gives

    @abstractmethod
    def write_calls(self, writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
        """Write one or more calls with their envelope. Raises `UnrepresentableError`."""

    @abstractmethod
    def write_results(self, writer: PromptWriter, results: Sequence[ToolMessage]) -> None:
        """Write a run of results, without the turn around them."""

    @abstractmethod
    def write_reasoning(self, writer: PromptWriter, text: str) -> None:
        """Write reasoning as the model would, up to where text or a call begins."""

    @abstractmethod
    def write_conversation(self, writer: PromptWriter, conversation: Conversation, generation_prompt: bool) -> None:
        """Write the family's turns."""

    @abstractmethod
    def new_scanner(self, tools: Sequence[Tool], starts_in: str, control: frozenset[str]) -> StreamScanner:
        """A scanner of this dialect. ``control`` are the markers that arrive as control tokens."""

    @abstractmethod
    def constraint(
        self,
        tools: Iterable[Tool] = (),
        tool_choice: ToolChoice | str = "auto",
        response_format: ResponseFormat | None = None,
        *,
        parallel: bool = True,
        reasoning: bool | str = True,
    ) -> Constraint:
        """The grammar of one assistant turn. ``reasoning``: allowed, not allowed, or already ``"open"``."""

    def prepared(self, conversation: Conversation) -> Conversation:
        """The conversation as the family has it, where it wants ids of its own shape."""
        return conversation

    # -- what follows from it

    @cached_property
    def guide(self) -> str:
        """The format guide told to a model that was not trained on the dialect (``<name>.md``)."""
        module = type(self).__module__
        package, _, stem = module.rpartition(".")
        return (files(package) / f"{stem}.md").read_text(encoding="utf-8").strip()

    def render(self, conversation: Conversation, *, generation_prompt: bool = True) -> Prompt:
        """The prompt in the family's own markup. Raises `UnrepresentableError`."""
        expect(conversation, Conversation, "what is rendered")
        writer = PromptWriter()
        self.write_conversation(writer, conversation, generation_prompt)
        return writer.prompt()

    def render_output(self, message: AssistantMessage, tools: Iterable[Tool] = ()) -> str:
        """What the model would have to say for its turn to be ``message``, without the tokens that end a turn.

        Raises `UnrepresentableError`.
        """
        asked = Conversation((UserMessage("Go on."),), tuple(tools))
        answered = Conversation((*asked.messages, message), asked.tools)
        prompt, whole = self.render(asked).text, self.render(answered, generation_prompt=False).text
        output = whole[_shared(prompt, whole) :]
        if output.endswith("\n") and not message.text.endswith("\n"):
            output = output.rstrip("\n")
        for marker in self.markers.kinds.get("turn_end", ()):
            output = output.removesuffix(marker)
        return output

    def render_calls(self, calls: Sequence[ToolCall], tools: Iterable[Tool] = ()) -> str:
        """Calls as the model would write them. ``tools`` decide how values are typed where the format needs it."""
        return self._written(lambda writer: self.write_calls(writer, calls, tuple(tools))) if calls else ""

    def render_results(self, results: Sequence[ToolMessage]) -> str:
        """A run of results as text."""
        return self._written(lambda writer: self.write_results(writer, results)) if results else ""

    def render_reasoning(self, text: str) -> str:
        """Reasoning as the model would write it."""
        return self._written(lambda writer: self.write_reasoning(writer, text)) if text else ""

    def scanner(
        self, tools: Iterable[Tool] = (), *, starts_in: str = "text", control: Iterable[str] = ()
    ) -> StreamScanner:
        """A scanner of one assistant turn. ``starts_in``: ``text``, or ``reasoning`` where the prompt opened it.

        ``control`` are spellings of control tokens in the engine's vocabulary: those that are markers of the dialect
        are then recognised only in a `Piece` that says so, and text that spells them stays text.
        """
        if starts_in not in ("text", "reasoning"):
            raise ConversationError(f"Expected `text` or `reasoning` for starts_in, got {starts_in!r}")
        known = frozenset(control).intersection(self.markers.all)
        scanner = self.new_scanner(expect_all(tools, Tool, "the tools"), starts_in, known)
        scanner.control = known
        return scanner

    def parse(self, text: str, tools: Iterable[Tool] = (), *, starts_in: str = "text") -> AssistantMessage:
        """The turn that ``text`` is: `collect` of what the scanner says."""
        return collect(self.events(text, tools, starts_in=starts_in))

    def events(self, text: str, tools: Iterable[Tool] = (), *, starts_in: str = "text") -> list[Event]:
        """All events of a whole output."""
        expect(text, str, "a model's output")
        scanner = self.scanner(tools, starts_in=starts_in)
        return scanner.feed(text) + scanner.finish()

    def starts_in(self, prompt: str) -> str:
        """``reasoning`` when the prompt ends inside an open reasoning block, else ``text``."""
        opener, closer = self.markers.kinds.get("think", ()), self.markers.kinds.get("think_close", ())
        tail = prompt.rstrip()
        opened = any(tail.endswith(marker.rstrip()) for marker in opener)
        return "reasoning" if opened and not any(tail.endswith(marker) for marker in closer) else "text"

    def extend(
        self,
        prompt_ids: Sequence[int],
        completion_ids: Sequence[int],
        new_messages: Sequence[Message],
        *,
        tokenizer: Tokenizer,
        tools: Iterable[Tool] = (),
    ) -> list[int]:
        """The ids of the next prompt: ``prompt_ids`` and ``completion_ids`` as they are, then what follows when the
        completion is a whole turn and ``new_messages`` come after it. ``tools`` are those of the conversation.

        Raises `UnrepresentableError`, which says why no prompt of the family begins with these ids: the completion did
        not end its turn, or is written otherwise than its history would be; the family leaves out reasoning that is in
        them, or tells new instructions in front of them.
        """
        from isogloss.dialects._continuation import extend

        return extend(
            self,
            lambda conversation, opens: self.render(conversation, generation_prompt=opens),
            prompt_ids,
            completion_ids,
            new_messages,
            tokenizer=tokenizer,
            tools=tuple(tools),
        )

    def tool_prompt(self, tools: Sequence[Tool], response_format: ResponseFormat | None = None) -> str:
        """What a model that was not trained on the dialect is told: the catalogue, the guide, the answer's format."""
        listed = ""
        if tools:
            catalogue = "\n".join(write_json(catalogue_entry(tool)) for tool in tools)
            listed = f"# Tools\n\nYou can call these tools:\n\n<tools>\n{catalogue}\n</tools>\n\n{self.guide}"
        return paragraphs(listed, format_prompt(response_format))

    def inband(self, conversation: Conversation) -> Conversation:
        """The same conversation in plain messages: tools told in the system text, calls and results written out."""
        conversation = self.prepared(conversation)
        told = self.tool_prompt(offered(conversation), conversation.response_format)
        system = paragraphs(instructions(conversation.messages), told)
        messages: list[Message] = [SystemMessage(system)] if system else []
        rest = [m for m in conversation.messages if not isinstance(m, SystemMessage | DeveloperMessage)]
        for _, spoken in runs(rest):
            if isinstance(spoken, list):
                messages.append(UserMessage(self.render_results(spoken)))
            elif isinstance(spoken, AssistantMessage):
                calls = self.render_calls(spoken.tool_calls, conversation.tools)
                said = "\n".join([text for text in (spoken.text or spoken.refusal, calls) if text])
                messages.append(AssistantMessage(said))
            else:
                messages.append(spoken)
        return Conversation(tuple(messages), reasoning_effort=conversation.reasoning_effort)

    def detects(self, model_id_or_template: str) -> bool:
        """Whether a model id, or the text of a chat template, is of this dialect's family."""
        text = model_id_or_template
        if "{%" in text or "{{" in text:
            return re.search(self.templates, text) is not None
        return re.search(self.model_ids, text.lower()) is not None

    def _written(self, write: Any) -> str:
        writer = PromptWriter()
        write(writer)
        return writer.prompt().text

    def __repr__(self) -> str:
        return f"<dialect {self.name}>"


class BlockDialect(Dialect):
    """A dialect whose turns are reasoning, text and blocks of calls, one after the other: all but harmony."""

    bare_call: ClassVar[str] = ""
    """What a block of calls begins with where the format has no marker for it: one character at the start of a line, or
    a longer text anywhere."""

    def write_reasoning(self, writer: PromptWriter, text: str) -> None:
        """As most families do: on lines of its own between the markers, with a blank line behind."""
        enclose(writer, self.markers, "think", text, margin="\n")
        writer.text("\n\n")

    @abstractmethod
    def call_grammar(self, tools: Sequence[Tool], parallel: bool) -> Term:
        """The rest of a block of calls behind the marker ``call`` (or `bare_call`), to the last of its closing markers.
        ``parallel``: the block may hold several calls, where the format has such blocks."""

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
        from isogloss.dialects._turn import turn

        tools = bounds(tools, response_format)
        constraint = turn(
            self.markers,
            self.call_grammar,
            tools,
            ToolChoice.of(tool_choice),
            response_format,
            parallel=parallel,
            reasoning=reasoning,
            bare=self.bare_call,
        )
        return watched(self, tools, constraint, "reasoning" if reasoning == "open" else "text")


def bounds(tools: Iterable[Tool], response_format: ResponseFormat | None) -> tuple[Tool, ...]:
    """The tools that bind a turn. Raises `TypeError` for what is no tool or no response format."""
    expect(response_format, (ResponseFormat, type(None)), "a response format")
    return expect_all(tools, Tool, "the tools")


def _shared(one: str, other: str) -> int:
    """How many characters both begin with."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
