"""Corpus files and the laws that every dialect keeps, for the tests of this package and of third-party dialects.

A corpus file is plain text. Each case begins with a title between two lines of ``=``; settings follow as ``key: value``
lines; then sections, each headed by a line ``@@ NAME``::

    ================================================================
    One call
    ================================================================
    finish: stop
    @@ tools
    {"name": "get_weather", "description": "", "parameters": {"type": "object", "properties": {}}}
    @@ conversation
    {"role": "user", "content": "Weather?"}
    @@ prompt
    <|im_start|>user
    Weather?<|im_end|>
    <|im_start|>assistant

    @@ output
    <tool_call>
    {"name": "get_weather", "arguments": {}}
    </tool_call>
    @@ events
    {"type":"tool_call_start","index":0,"name":"get_weather","start":0,"end":33}

``tools`` and ``conversation`` are one JSON object a line, in the form of the Chat Completions API. ``prompt`` is what
`Dialect.render` gives for them; ``output`` is what the model says; ``events`` is what scans from it, deltas joined.
A section's last line break is not part of it. ``@@ output json`` holds a JSON string, for text that a file cannot show.
Tools of the first case serve the later ones that name none. Settings: ``starts_in``, ``finish``.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from isogloss.dialects import Dialect
from isogloss.events import (
    Event,
    Finish,
    Malformed,
    Piece,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    collect,
    merge,
)
from isogloss.messages import AssistantMessage, Conversation, Tool, UserMessage

if TYPE_CHECKING:
    from isogloss.constraints import Constraint

_RULE = "=" * 64
_CASE = re.compile(r"^={8,}\n(?P<title>[^\n]+)\n={8,}\n", re.MULTILINE)
_SECTION = re.compile(r"^@@ (?P<name>\w+)(?P<json> json)?\n", re.MULTILINE)


class Case(msgspec.Struct):
    """One case of a corpus file. Sections that it does not have are ``None``."""

    title: str
    settings: dict[str, str]
    sections: dict[str, str]
    escaped: frozenset[str]
    tools: tuple[Tool, ...]

    @property
    def output(self) -> str | None:
        return self.sections.get("output")

    @property
    def starts_in(self) -> str:
        return self.settings.get("starts_in", "text")

    @property
    def finish(self) -> str:
        return self.settings.get("finish", "stop")

    @property
    def conversation(self) -> Conversation | None:
        lines = self.sections.get("conversation")
        if lines is None:
            return None
        request = {"messages": [json.loads(line) for line in lines.splitlines()]}
        asked = Conversation.from_openai(request)
        return Conversation(asked.messages, self.tools, reasoning_effort=self.settings.get("effort"))

    def prompt(self, dialect: Dialect) -> str | None:
        """What the dialect renders for the conversation."""
        conversation = self.conversation
        return None if conversation is None else dialect.render(conversation).text

    def events(self, dialect: Dialect) -> str | None:
        """What scans from the output, one event a line."""
        if self.output is None:
            return None
        events = scan(dialect, [self.output], self.tools, starts_in=self.starts_in, finish=self.finish)
        return "\n".join([event_line(event) for event in events])

    def write(self) -> str:
        """The case as the file has it."""
        lines = [_RULE, self.title, _RULE, *[f"{key}: {value}" for key, value in self.settings.items()]]
        for name, text in self.sections.items():
            escaped = name in self.escaped
            lines += [f"@@ {name} json" if escaped else f"@@ {name}", json.dumps(text) if escaped else text]
        return "\n".join(lines) + "\n"


def read_corpus(path: Path) -> list[Case]:
    """The cases of a corpus file."""
    text = path.read_text(encoding="utf-8")
    titles = list(_CASE.finditer(text))
    cases: list[Case] = []
    tools: tuple[Tool, ...] = ()
    for number, title in enumerate(titles):
        # An empty line stands between two cases.
        end = titles[number + 1].start() - 1 if number + 1 < len(titles) else len(text)
        body = text[title.end() : end]
        case = _read_case(title["title"], body, tools)
        tools = tools or case.tools
        cases.append(case)
    return cases


def write_corpus(path: Path, dialect: Dialect) -> None:
    """Rewrite what the file expects (prompts, events) by what the dialect does now; a reviewer reads the diff."""
    cases = read_corpus(path)
    for case in cases:
        for name, now in (("prompt", case.prompt(dialect)), ("events", case.events(dialect))):
            if now is not None:
                case.sections[name] = now
        order = ("tools", "conversation", "prompt", "output", "events")
        case.sections = {name: case.sections[name] for name in order if name in case.sections}
    path.write_text("\n".join([case.write() for case in cases]), encoding="utf-8")


def _read_case(title: str, body: str, tools: tuple[Tool, ...]) -> Case:
    heads = list(_SECTION.finditer(body))
    settings = dict(line.split(": ", 1) for line in body[: heads[0].start()].splitlines() if line)
    sections: dict[str, str] = {}
    escaped: set[str] = set()
    for number, head in enumerate(heads):
        end = heads[number + 1].start() if number + 1 < len(heads) else len(body)
        text = body[head.end() : end].removesuffix("\n")
        if head["json"]:
            escaped.add(head["name"])
            text = json.loads(text)
        sections[head["name"]] = text
    if "tools" in sections:
        tools = tuple(_tool(json.loads(line)) for line in sections["tools"].splitlines())
    return Case(title, settings, sections, frozenset(escaped), tools)


def _tool(entry: dict[str, Any]) -> Tool:
    return Tool(entry["name"], entry.get("description", ""), entry.get("parameters", {"type": "object"}))


# -- scanning for tests


def scan(
    dialect: Dialect,
    pieces: Iterable[str | Piece],
    tools: Iterable[Tool] = (),
    *,
    starts_in: str = "text",
    finish: str = "stop",
    control: Iterable[str] = (),
) -> list[Event]:
    """The merged events of an output given in pieces, with fresh ids taken out so that runs compare equal."""
    scanner = dialect.scanner(tools, starts_in=starts_in, control=control)
    events = [event for piece in pieces for event in scanner.feed(piece)]
    return [_without_fresh_id(event) for event in merge(events + scanner.finish(finish))]


def event_line(event: Event) -> str:
    """One line of JSON for a corpus file; an id that is not the model's is left out."""
    fields = msgspec.to_builtins(event)
    if fields.get("id") == "":
        del fields["id"]
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def _without_fresh_id(event: Event) -> Event:
    if isinstance(event, ToolCallStart) and re.fullmatch(r"call_[0-9a-f]{24}", event.id):
        return msgspec.structs.replace(event, id="")
    return event


# -- the laws


def check_cuts(
    dialect: Dialect,
    output: str,
    tools: Sequence[Tool] = (),
    *,
    starts_in: str = "text",
    finish: str = "stop",
    most: int = 400,
    seed: int = 0,
) -> list[Event]:
    """Law 1: the same events wherever the output is cut: every two-way cut (at most ``most`` of them, chosen by
    ``seed``), one character at a time, and random cuts."""
    whole = scan(dialect, [output], tools, starts_in=starts_in, finish=finish)
    for pieces in cuts(output, most, seed):
        cut = scan(dialect, pieces, tools, starts_in=starts_in, finish=finish)
        assert cut == whole, _difference(f"cut into {_short(pieces)}", whole, cut)
    return whole


def cuts(text: str, most: int = 400, seed: int = 0) -> Iterator[list[str]]:
    """Ways to cut a text: one character at a time, in two at every place, and at random."""
    yield list(text)
    chance = random.Random(seed)
    places = range(1, len(text))
    for place in places if len(places) <= most else chance.sample(places, most):
        yield [text[:place], text[place:]]
    for _ in range(8):
        pieces, at = [], 0
        while at < len(text):
            step = chance.randint(1, 9)
            pieces.append(text[at : at + step])
            at += step
        yield pieces


def check_conservation(output: str, events: Sequence[Event]) -> None:
    """Law 5: spans tile the output, every start has one end or a `Malformed`, deltas spell the arguments, and what is
    malformed is there as it was written."""
    end = 0
    open_calls: dict[int, list[str]] = {}
    seen: set[int] = set()
    for event in events:
        assert event.start == end, f"{event} should start at {end}"
        assert event.end >= event.start, f"{event} ends before it starts"
        end = event.end
        if isinstance(event, ToolCallStart):
            assert event.index not in seen, f"{event} has the index of another call"
            seen.add(event.index)
            open_calls[event.index] = []
        elif isinstance(event, ToolCallDelta):
            open_calls[event.index].append(event.arguments)
        elif isinstance(event, ToolCallEnd):
            written = "".join(open_calls.pop(event.index))
            assert json.loads(written) == event.arguments, f"{written} is not {event.arguments}"
        elif isinstance(event, Malformed):
            assert event.raw, f"{event} has no raw text"
            assert output[: event.end].endswith(event.raw), f"{event} is not what the output says"
            if event.index is not None:
                open_calls.pop(event.index)
    assert not open_calls, f"calls {sorted(open_calls)} neither end nor are malformed"
    assert isinstance(events[-1], Finish), "the last event is not Finish"
    assert end == len(output), f"the spans end at {end}, the output at {len(output)}"


def check_output(dialect: Dialect, output: str, tools: Sequence[Tool] = (), **options: Any) -> list[Event]:
    """Laws 1 and 5 for one output."""
    events = check_cuts(dialect, output, tools, **options)
    check_conservation(output, events)
    return events


def check_round_trip(dialect: Dialect, message: AssistantMessage, tools: Sequence[Tool]) -> str:
    """Law 2: scanning what render wrote for an assistant's turn gives back the turn. Returns what was written.

    Raises `UnrepresentableError` where the dialect says that it cannot carry the turn.
    """
    prompt, output = rendered_turn(dialect, message, tools)
    found = dialect.parse(output, tools, starts_in=dialect.starts_in(prompt))
    _assert_same_turn(found, message, output)
    return output


def rendered_turn(dialect: Dialect, message: AssistantMessage, tools: Sequence[Tool]) -> tuple[str, str]:
    """A prompt, and what the assistant would have to say for the history to hold ``message``."""
    asked = Conversation((UserMessage("Go on."),), tuple(tools))
    history = Conversation((UserMessage("Go on."), message), tuple(tools))
    prompt = dialect.render(asked).text
    whole = dialect.render(history, generation_prompt=False).text
    start = _common_prefix(prompt, whole)
    return prompt, whole[start:]


def check_reconstruction(dialect: Dialect, message: AssistantMessage, tools: Sequence[Tool]) -> None:
    """Law 4: rendering the history and the scanned turn starts with the prompt and the output."""
    prompt, output = rendered_turn(dialect, message, tools)
    assert dialect.render(Conversation((UserMessage("Go on."),), tuple(tools))).text == prompt
    found = dialect.parse(output, tools, starts_in=dialect.starts_in(prompt))
    again = dialect.render(Conversation((UserMessage("Go on."), found), tuple(tools)), generation_prompt=False).text
    assert again.startswith(prompt + output.rstrip("\n")) or (prompt + output).startswith(again), _lines(
        "prompt and output", prompt + output, "rendered again", again
    )


def check_accepted(
    dialect: Dialect, message: AssistantMessage, tools: Sequence[Tool], *, control: Iterable[str] = (), **options: Any
) -> None:
    """Law 3, one half: the constraint accepts what render writes, with markers as text or as control tokens."""
    from isogloss.constraints import accepts
    from isogloss.tokenizers import byte_level

    prompt, output = rendered_turn(dialect, message, tools)
    for marker in dialect.markers.kinds.get("turn_end", ()):
        output = output.rstrip("\n").removesuffix(marker)
    reasoning = "open" if dialect.starts_in(prompt) == "reasoning" else True
    constraint = dialect.constraint(tools, reasoning=reasoning, **options)
    found = accepts(constraint, output, byte_level(control))
    assert found.is_accepted, f"refused at {found.offset}: {output[: found.offset]!r} | {output[found.offset :]!r}"


def check_generated(dialect: Dialect, tools: Sequence[Tool], seed: int, *, most: int = 400, **options: Any) -> bool:
    """Law 3, the other half: a turn that random choices make under the constraint scans without `Malformed`, its calls
    are of the tools, and their arguments and the answer satisfy their schemas. Returns whether the turn came to its
    end within ``most`` bytes."""
    constraint = dialect.constraint(tools, **options)
    output, is_whole = random_output(constraint, seed, most)
    starts_in = "reasoning" if options.get("reasoning") == "open" else "text"
    events = scan(dialect, [output], tools, starts_in=starts_in, finish="stop" if is_whole else "length")
    message = collect(events)
    check_conservation(output, events)
    if is_whole:
        assert not message.malformed, f"{message.malformed} in {output!r}"
    schemas = {tool.name: tool.parameters for tool in tools}
    for call in message.tool_calls:
        assert call.name in schemas, f"{call.name!r} is no tool, in {output!r}"
        _validate(schemas[call.name], call.arguments)
    response_format = options.get("response_format")
    if is_whole and response_format is not None and not message.tool_calls and not message.refusal:
        _validate(response_format.schema or {"type": "object"}, json.loads(message.text))
    if is_whole and options.get("tool_choice") == "required":
        assert message.tool_calls, f"no call in {output!r}"
    return is_whole


def _validate(schema: Any, value: Any) -> None:
    """Raise `jsonschema_rs.ValidationError` for a value that a constraint must not let through: formats count."""
    import jsonschema_rs

    jsonschema_rs.validator_for(schema, validate_formats=True).validate(value)


def random_output(constraint: Constraint, seed: int, most: int = 400) -> tuple[str, bool]:
    """A text made byte by byte under a constraint by random choices, and whether the constraint lets it end there.

    Characters that structure likes are preferred, so that turns come to an end; a turn that may end ends half the time.
    """
    from isogloss.tokenizers import byte_level

    chance = random.Random(seed)
    matcher = constraint.matcher(byte_level())
    out: list[int] = []
    while len(out) < most:
        if matcher.is_complete and (matcher.is_stopped or chance.random() < 0.3):
            return bytes(out).decode(), True
        mask = matcher.mask()
        allowed = [byte for byte in range(256) if mask[byte >> 5] >> (byte & 31) & 1]
        if not allowed:  # a dead end, which the matcher must own up to
            assert matcher.is_stuck, f"nothing is allowed after {bytes(out)!r}"
            return bytes(out).decode(errors="ignore"), False
        liked = [byte for byte in allowed if byte in b'"}]<>|\n{['] if chance.random() < 0.5 else []
        plain = [byte for byte in allowed if 32 <= byte < 127]
        byte = chance.choice(liked or plain or allowed)
        assert matcher.accept(byte)
        out.append(byte)
    return bytes(out).decode(errors="ignore"), False


def check_bounded_work(dialect: Dialect, output: str, tools: Sequence[Tool] = (), *, piece: int = 1) -> None:
    """Law 6: what is held back is bounded, whatever the output."""
    from isogloss.dialects._scanner import LONGEST_HELD

    scanner = dialect.scanner(tools)
    for at in range(0, len(output), piece):
        scanner.feed(output[at : at + piece])
        assert scanner.held <= LONGEST_HELD, f"{scanner.held} characters held back at {at}"
    scanner.finish()


def check_no_forgery(dialect: Dialect, conversation: Conversation, tokenizer: Any) -> None:
    """Law 7: no token id that content gave rise to is a control token, and markers that are control tokens are ids."""
    prompt = dialect.render(conversation)
    special = set(tokenizer.special_tokens.values())
    ids = prompt.tokens(tokenizer)
    written = [segment.text for segment in prompt.segments if segment.is_marker]
    expected = [tokenizer.special_tokens[text] for text in written if text in tokenizer.special_tokens]
    assert [token for token in ids if token in special] == expected
    assert tokenizer.decode(ids) == prompt.text


def _common_prefix(one: str, other: str) -> int:
    at = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        at += 1
    return at


def _assert_same_turn(found: AssistantMessage, wanted: AssistantMessage, output: str) -> None:
    for field in ("text", "reasoning", "refusal"):
        one, other = getattr(found, field), getattr(wanted, field)
        assert one == other, _lines(f"{field} wanted", other, "found", one) + f"\noutput: {output!r}"
    one_calls = [(call.name, json.dumps(call.arguments)) for call in found.tool_calls]
    other_calls = [(call.name, json.dumps(call.arguments)) for call in wanted.tool_calls]
    assert one_calls == other_calls, _lines("calls wanted", str(other_calls), "found", str(one_calls)) + f"\n{output!r}"
    assert not found.malformed, f"{found.malformed} in {output!r}"


def _difference(where: str, whole: Sequence[Event], cut: Sequence[Event]) -> str:
    return f"{where}:\n{_shown(cut)}\nbut whole:\n{_shown(whole)}"


def _shown(events: Sequence[Event]) -> str:
    return "\n".join([f"  {event}" for event in events])


def _lines(one: str, first: str, other: str, second: str) -> str:
    return f"{one}: {first!r}\n{other}: {second!r}"


def _short(pieces: Sequence[str]) -> str:
    return str(list(pieces)) if len(pieces) <= 3 else f"{len(pieces)} pieces"
