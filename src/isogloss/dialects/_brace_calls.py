"""Calls of the form ``call:NAME{key:value,...}``, as the Gemma family writes them between tokens of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Final

import regex

from isogloss._compiled import mypyc_attr
from isogloss.dialects._lexicon import Found, spell
from isogloss.dialects._markers import Markers
from isogloss.dialects._scanner import MADE_UP_RESULT, StreamScanner
from isogloss.errors import UnrepresentableError
from isogloss.messages import Tool, ToolCall, ToolMessage
from isogloss.notations.gemma import Delimiters, GemmaReader, delimiters, write
from isogloss.prompt import PromptWriter
from isogloss.schema.view import SchemaView, shared_view

NO_CALL: Final = "no `call:NAME{...}` behind the opening token"

_NAME = r"[^\s{}<>\[\]()\"',\ud800-\udfff]{1,256}"
_is_name = regex.compile(rf"(?!:){_NAME}").fullmatch


@lru_cache(maxsize=16)
def _head(call_close: str) -> Any:
    """What stands in front of the arguments; ``bare`` where there are none, not even braces."""
    return regex.compile(
        rf"\s{{0,16}}+(?:call)?\s?:\s?(?P<name>{_NAME})\s{{0,16}}+(?:(?P<bare>(?={regex.escape(call_close)}))|(?=\{{))"
    ).match


def spelled(markers: Markers, control: frozenset[str] = frozenset()) -> Delimiters:
    """The delimiters of strings and calls as they stand in a scanner's buffer."""
    quote, call, call_close = (spell(markers[kind], control) for kind in ("quote", "call", "call_close"))
    return delimiters(quote, call, call_close, markers["quote"] in control)


@mypyc_attr(allow_interpreted_subclasses=True)
class BraceCallScanner(StreamScanner):
    """Scans ``call:NAME{...}`` between ``call`` and ``call_close``; ``quote`` delimits strings.

    A call is whole with its last brace: a missing closing token does no harm.
    """

    framed_by_tokens: ClassVar[bool] = True

    def __init__(self, markers: Markers, tools: Iterable[Tool], starts_in: str, control: frozenset[str]) -> None:
        self.text_prose, self.reasoning_prose, self.refusal_prose, self.results = markers.prose(control, trims=())
        self._faults = markers.lexicon(("call_close", "call", "turn_end"), control)
        self._tails = markers.lexicon(("call_close",), control)
        self._delimiters = spelled(markers, control)
        self._head = _head(spell(markers["call_close"], control))
        super().__init__(tools, starts_in)

    def _on_call(self, found: Found) -> None:
        self._open(found.start)
        self._state = self._header

    def _on_call_close(self, found: Found) -> None:
        """A closer without an opener: markup that says nothing."""

    def _header(self) -> bool:
        match = self._head(self._text, self._pos, partial=True)
        if match is not None and match.partial:
            return False
        if match is None:
            self._discard(NO_CALL, self._faults)
            return True
        name = match["name"]
        tool = self.tools.get(name)
        self._pos = match.end()
        self._start(name, "", self._pos)
        if match["bare"] is None:
            self._reader = GemmaReader(self._delimiters, shared_view(tool.parameters) if tool is not None else None)
            self._state = self._arguments
        else:
            self._delta("{}", self._pos)
            self._whole()
        return True

    def _arguments(self) -> bool:
        reader = self._reader
        self._pos, fragment = reader.read(self._text, self._pos)
        if fragment:
            self._delta(fragment, reader.settled)
        if reader.done:
            self._whole()
            return True
        if reader.fault:
            self._discard(reader.fault, self._faults)
            return True
        return False

    def _whole(self) -> None:
        self._end(self._pos)
        self._state = self._tail

    def _tail(self) -> bool:
        """Between the last brace and the closing token."""
        found = self._tails.find(self._text, self._pos, self._final)
        if found == self._pos and not self._final:
            return False
        if isinstance(found, Found) and found.start == self._pos:
            self._pos = found.end
        self._enter(self.text_prose)
        return True

    def _on_result(self, found: Found) -> None:
        """Engines stop the model here to run its calls. What it writes behind it, it made up."""
        self._open(found.start)
        self._state = self._stopped_for_results

    def _stopped_for_results(self) -> bool:
        if self._pos == len(self._text):
            if self._final:
                self._close()
            return False
        self._discard(MADE_UP_RESULT, self.results)
        return True


def write_calls(writer: PromptWriter, calls: Sequence[ToolCall], tools: Sequence[Tool], markers: Markers) -> None:
    """Calls between their tokens. Raises `UnrepresentableError`."""
    schemas = {tool.name: tool.parameters for tool in tools}
    for call in calls:
        opening = write_opening(call.name)
        view = shared_view(schemas[call.name]) if call.name in schemas else None
        writer.marker(markers["call"])
        writer.text(opening)
        write_braces(writer, call.arguments, view, markers)
        writer.marker(markers["call_close"])


def write_opening(name: str) -> str:
    """What stands in front of the arguments. Raises `UnrepresentableError` for a name that it cannot carry."""
    if _is_name(name) is None:
        raise UnrepresentableError(f"A `call:NAME` cannot carry the name {name!r}")
    return f"call:{name}"


def write_results(writer: PromptWriter, results: Sequence[ToolMessage], markers: Markers) -> None:
    """Results between their tokens, each under the key ``value``."""
    quote = markers["quote"]
    for result in results:
        writer.marker(markers["result"])
        writer.text(f"response:{result.name}{{value:")
        writer.marker(quote)
        writer.text(result.text)
        writer.marker(quote)
        writer.text("}")
        writer.marker(markers["result_close"])


def write_braces(
    writer: PromptWriter, value: Any, view: SchemaView | None, markers: Markers, *, is_read_back: bool = True
) -> None:
    """A value in the notation, its delimiters as the tokens that they are."""
    quote = markers["quote"]
    for number, text in enumerate(write(value, view, spelled(markers), is_read_back=is_read_back)):
        if number:
            writer.marker(quote)
        writer.text(text)
