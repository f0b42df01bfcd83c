"""Calls of the form ``<invoke name="NAME"><parameter name="KEY">VALUE</parameter></invoke>``, in a block or alone.

Claude's prompt-level format, which MiniMax M2, DeepSeek's DSML and MiniCPM5 are descended from. What a family calls its
tags, and what stands in front of their names, is in its `InvokeTags`. Tags are read in any letter case, with blanks in
them, with any namespace prefix where the family has none of its own, and with attributes in double quotes, single
quotes or none. The entities of XML are decoded in attributes and, but for families that say otherwise, nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import ClassVar, Final, NamedTuple, Protocol

import regex

from isogloss._compiled import mypyc_attr
from isogloss.dialects._base import Dialect
from isogloss.dialects._lexicon import Found, Lexicon, arrives_as_control, spell
from isogloss.dialects._markers import Markers
from isogloss.dialects._tag_calls import NO_NAME, TagCallScanner
from isogloss.dialects._tag_grammar import calls, parameters
from isogloss.dialects._tag_writing import write_call
from isogloss.grammar import Literal, Marker, Repeat, Term, sequence
from isogloss.messages import Tool, ToolCall
from isogloss.prompt import PromptWriter
from isogloss.schema.view import SchemaView

NAMESPACE = r"(?:[A-Za-z][\w.-]{0,31}+:)?"
"""Any prefix, or none."""

NO_CALLS: Final = "a block without a call"

_BARE = r"""(?:(?!/?>)[^\s"'<>]){1,256}+"""
_ENTITY = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6}));")
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_ESCAPES = {"&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;", "\n": "&#10;", "\r": "&#13;"}
_IS_STRING = re.compile(r"""\bstring\s*=\s*["']?(\w+)""", re.IGNORECASE).search


class InvokeTags(NamedTuple):
    """How a family spells its tags, as regular expressions. ``lead`` is what stands between ``<`` or ``</`` and a name,
    ``blocks`` the names of the tags around calls, ``space`` a character of white space, ``gap`` what parts a tag's name
    from its first attribute, ``end`` the end of a block's opening tag. ``mark`` is a character that ``lead`` begins
    with, where that tells a tag from text, and ``section`` what begins a section in a value that is read by its own
    rules; ``closes`` is what closing tags begin with, ``whole`` a tag behind which all arguments stand at once."""

    lead: str = NAMESPACE
    invoke: str = "invoke"
    parameter: str = "parameter"
    blocks: str = "function_calls|tool_calls?"
    space: str = r"\s"
    gap: str = r"\s{1,8}+"
    end: str = ">"
    mark: str = ""
    section: str = ""
    closes: str = "</"
    whole: str = ""

    def beginning(self, *others: str) -> str:
        """Where one of the tags may begin, or a tag with one of the ``others`` as its name: a quick first look."""
        if self.mark:
            return rf"<(?=[{self.space}/]{{0,17}}(?:{self.mark}|\Z))"
        names = [self.invoke, *self.parameter.split("|"), *self.blocks.split("|"), *others]
        initials = "|".join(sorted({name[:2] for name in names}))
        initials += "".join(sorted({f"|{name[0]}\\Z" for name in names}))
        return rf"<(?={self.space}{{0,8}}/?{self.space}{{0,8}}(?:(?i:{initials})|[A-Za-z][\w.-]{{0,31}}(?::|\Z)|\Z))"

    def closing(self, name: str) -> str:
        """A closing tag."""
        space = f"{self.space}{{0,8}}+"
        return rf"(?i:<{space}/{space}{self.lead}(?:{name}){space}>)"

    def any_closing(self) -> str:
        """A closing tag of any name, perhaps without its end."""
        return r"</[^<>\s]{1,64}+>?"

    def block(self) -> str:
        """The opening tag of a block."""
        space = f"{self.space}{{0,8}}+"
        return rf"(?i:<{space}{self.lead}(?:{self.blocks}){space}{self.end})"

    def begun(self, name: str) -> str:
        """The beginning of an opening tag with attributes."""
        space = self.space
        return rf"(?i:<{space}{{0,8}}+{self.lead}(?:{name})(?:{space}{{1,8}}+[A-Za-z]|{self.gap}name(?=\W)))"

    def opening(self, name: str, group: str) -> str:
        """An opening tag, with the raw value of its attribute ``name`` in ``group``."""
        space = f"{self.space}{{0,8}}+"
        equals = f"{space}={space}"
        short = rf"""(?:"[^"\n]{{0,48}}+"|'[^'\n]{{0,48}}+'|{_BARE})"""
        other = rf"{self.space}{{1,8}}+[A-Za-z_][\w:.-]{{0,31}}+(?:{equals}{short})?"
        value = rf"""(?:"[^"\n]{{0,256}}+"|'[^'\n]{{0,256}}+'|{_BARE})"""
        named = rf"{self.gap}{NAMESPACE}name{equals}(?P<{group}>{value})"
        head = rf"<{space}{self.lead}(?:{name})(?:{other}){{0,2}}?{named}"
        return rf"(?i:{head}(?:{other}){{0,2}}{space}/?>)"


class Tags(Hashable, Protocol):
    """What the scanner has to know of a family's tags; `InvokeTags` says what each is."""

    @property
    def invoke(self) -> str: ...
    @property
    def parameter(self) -> str: ...
    @property
    def blocks(self) -> str: ...
    @property
    def space(self) -> str: ...
    @property
    def section(self) -> str: ...
    @property
    def closes(self) -> str: ...
    @property
    def whole(self) -> str: ...

    def beginning(self, *others: str) -> str: ...
    def closing(self, name: str) -> str: ...
    def block(self) -> str: ...
    def begun(self, name: str) -> str: ...
    def opening(self, name: str, group: str) -> str: ...
    def any_closing(self) -> str: ...


def patterns(tags: Tags) -> dict[str, str]:
    """Patterns for a family's `Markers`: of a block, and of calls without one."""
    return {
        "call": tags.block(),
        "call_close": tags.closing(tags.blocks),
        "invoke": tags.opening(tags.invoke, "name"),
        "invoke_close": tags.closing(tags.invoke),
    }


KINDS = ("invoke", "invoke_close", "parameter_close")
"""Kinds that interrupt text besides those that all dialects have."""

TRIMS = ("call", "think", "result", "refusal", "invoke")
"""Kinds that own the white space in front of them."""


class CallLexicons(NamedTuple):
    """What may stand in a block before its first call and between two parameters, and what ends a value: while there
    may be more of the output, and where it has come to its end of itself."""

    block: Lexicon
    between: Lexicon
    value_end: Lexicon
    final_value_end: Lexicon


@lru_cache(maxsize=64)
def syntax(tags: Tags, markers: Markers, control: frozenset[str]) -> CallLexicons:
    """The lexicons of a call. ``control`` are the markers that arrive as control tokens."""
    block, block_close = (_block_tags(kind, markers, control) for kind in ("call", "call_close"))
    parameter, parameter_close = tags.opening(tags.parameter, "key"), tags.closing(tags.parameter)
    invoke, invoke_close = tags.opening(tags.invoke, "name"), tags.closing(tags.invoke)
    between = {"parameter": parameter, "invoke_close": invoke_close, "call_close": block_close}
    between |= {"invoke": invoke, "call": block, "parameter_close": parameter_close}
    if tags.whole:
        between["whole"] = tags.whole
    space = rf"{tags.space}{{0,64}}+"
    goes_on = rf"{tags.begun(tags.parameter)}|{tags.begun(tags.invoke)}|{invoke_close}|{block_close}|{block}"
    ends = rf"{invoke_close}{space}(?:{block_close}|{tags.begun(tags.invoke)}"
    closers = {
        "parameter_close": rf"{parameter_close}(?={space}(?:{goes_on}))",
        "other_close": rf"{tags.any_closing()}(?={space}(?:{tags.opening(tags.parameter, 'next')}|{ends})))",
        "next_parameter": rf"(?={parameter})",
        "next_call": rf"(?={invoke}{space}(?:{tags.begun(tags.parameter)}|{invoke_close}))",
    }
    beginning = f"{tags.closes}|{tags.beginning()}"
    if tags.section:
        closers["section"] = tags.section
        beginning = f"{tags.section[:2]}|{beginning}"
    return CallLexicons(
        Lexicon({}, patterns={"invoke": invoke, "call_close": block_close, "call": block}),
        Lexicon({}, patterns=between),
        Lexicon({}, patterns={**closers, "not_closed": f"(?={ends}))"}, beginning=beginning),
        Lexicon({}, patterns={**closers, "not_closed": rf"(?={ends}|\Z))"}, beginning=beginning),
    )


def _block_tags(kind: str, markers: Markers, control: frozenset[str]) -> str:
    tags = markers.kinds.get(kind, ())
    spelled = [regex.escape(spell(tag, control)) for tag in tags]
    if not any(arrives_as_control(tag, control) for tag in tags):
        spelled.append(markers.patterns[kind])
    return f"(?:{'|'.join(spelled)})"


@mypyc_attr(allow_interpreted_subclasses=True)
class InvokeCallScanner(TagCallScanner):
    """Scans one turn with calls of this form. ``also_in_text`` are further kinds that interrupt text."""

    also_in_text: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, lexicons: CallLexicons, markers: Markers, tools: Iterable[Tool], starts_in: str, control: frozenset[str]
    ) -> None:
        trims = () if self.framed_by_tokens else TRIMS
        prose = markers.prose(control, extra=(*KINDS, *self.also_in_text), trims=trims)
        self.text_prose, self.reasoning_prose, self.refusal_prose, self.results = prose
        self.faults = markers.lexicon(("call_close", "invoke_close", "call", "invoke", "turn_end"), control)
        self.block, self.between, self.value_end, self.final_value_end = lexicons
        super().__init__(tools, starts_in)

    # -- in running text

    def _on_call(self, found: Found) -> None:
        self._open(found.start)
        self._state = self._in_block

    def _on_invoke(self, found: Found) -> None:
        if self._raw is None:
            self._open(found.start)
        name = self.name_of(found)
        if not name:
            self._pos = found.end
            self._fault(NO_NAME)
            return
        self._named(name, found.end)
        if _is_self_closing(found):
            self._call_closed(found.end)

    def _on_invoke_close(self, found: Found) -> None:
        """A closer without an opener: markup that says nothing."""
        self._enter(self.text_prose)

    def _on_parameter_close(self, found: Found) -> None:
        self._on_invoke_close(found)

    def _on_call_close(self, found: Found) -> None:
        self._on_invoke_close(found)

    # -- in a block, before its first call

    def _in_block(self) -> bool:
        found = self._next_in(self.block)
        if found is None:
            return False
        if found.kind == "invoke":
            self._pos = found.end
            self._on_invoke(found)
        elif found.kind == "call_close":
            self._pos = found.end
            self._malformed(NO_CALLS, found.end)
            self._enter(self.text_prose)
        elif found.kind == "call":
            self._pos = found.end
        else:
            self._fault(NO_CALLS)
        return True

    # -- in a call, between two parameters

    def _in_call_parameter(self, found: Found) -> None:
        self._parameter(self.key_of(found), found.end, is_string=self.says_string(found))
        if _is_self_closing(found):
            self._delta(self._value.end(), found.end)
            self._state = self._between_parameters

    def _in_call_invoke_close(self, found: Found) -> None:
        self._call_closed(found.end)

    def _in_call_call_close(self, found: Found) -> None:
        """The end of the block closes a call all of whose parameters are closed."""
        self._call_closed(found.end)

    def _in_call_invoke(self, found: Found) -> None:
        self._not_closed(found.start)

    def _in_call_call(self, found: Found) -> None:
        self._not_closed(found.start)

    def _in_call_parameter_close(self, found: Found) -> None:
        """A closing tag too many."""

    def says_string(self, found: Found) -> bool | None:
        """Whether the tag of a parameter says that its value is a string, if it says anything."""
        said = _IS_STRING(found.match[0])
        return None if said is None else said[1].lower() not in ("false", "0", "no")

    def key_of(self, found: Found, group: str = "key") -> str:
        return unescape_attribute(found.match[group])

    def name_of(self, found: Found) -> str:
        return unescape_attribute(found.match["name"])


def unescape_attribute(raw: str) -> str:
    """The value of an attribute, quotes and entities read."""
    if raw[:1] in "\"'":
        raw = raw[1:-1]
    return unescape(raw)


def unescape(text: str) -> str:
    """Text with the entities of XML decoded. What is none stays as it is."""
    return _ENTITY.sub(_entity, text) if "&" in text else text


def _entity(match: re.Match[str]) -> str:
    named, decimal, hexadecimal = match.groups()
    if named:
        return _ENTITIES[named]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(code) if code <= 0x10FFFF else match[0]


def escape_attribute(text: str) -> str:
    """Text as the value of an attribute in double quotes."""
    return "".join([_ESCAPES.get(char, char) for char in text])


def _is_self_closing(found: Found) -> bool:
    return str(found.match[0]).endswith("/>")


# -- writing


def write_block(writer: PromptWriter, dialect: Dialect, calls: Sequence[ToolCall], tools: Sequence[Tool]) -> None:
    """A block of calls, each of its tags on a line."""
    writer.marker(dialect.markers["call"])
    for call in calls:
        writer.text("\n")
        write_call(writer, dialect, call, tools, write_invoke)
    writer.text("\n")
    writer.marker(dialect.markers["call_close"])


def write_invoke(writer: PromptWriter, call: ToolCall, texts: Mapping[str, str]) -> None:
    """One call, each of its tags on a line."""
    writer.text(f'<invoke name="{escape_attribute(call.name)}">\n')
    for key, value in texts.items():
        writer.text(f'<parameter name="{escape_attribute(key)}">{value}</parameter>\n')
    writer.text("</invoke>")


def block_grammar(tools: Sequence[Tool], parallel: bool, close: Literal | Marker) -> Term:
    """The calls of a block, each of its tags on a line, and the end of the block."""
    line = sequence(calls(tools, _invoke_grammar), Literal("\n"))
    return sequence(Literal("\n"), Repeat(line, 1, None if parallel else 1), close)


def _invoke_grammar(tool: Tool) -> Term:
    arguments = parameters(
        tool.parameters, _parameter_opener, Literal("</parameter>\n"), FOREIGN, spell=escape_attribute
    )
    return sequence(Literal(f'<invoke name="{escape_attribute(tool.name)}">\n'), arguments, Literal("</invoke>"))


FOREIGN = (Literal("<parameter "), Literal("<invoke "), Literal("</invoke>"))
"""What strings do not hold where a grammar binds them."""


def _parameter_opener(key: Term, value: SchemaView | None) -> Term:
    return sequence(Literal('<parameter name="'), key, Literal('">'))
