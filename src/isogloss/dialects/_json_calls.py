"""Calls written as JSON objects: ``{"name": "f", "arguments": {...}}``, one or an array of them.

The envelope's keys may come in any order. Arguments stream as they are read; those that come before the name wait for
it. Arguments that are themselves a string of JSON text are read through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from isogloss._compiled import mypyc_attr
from isogloss.dialects._scanner import StreamScanner
from isogloss.notations.json import JsonReader, parse
from isogloss.notations.runs import run

_SPACE = run(r"[\s\ufeff]*")
_BARE_KEY = run(r"[\w$-]*")

LONGEST_NAME: Final = 1024
"""Longest name of a tool, in characters of JSON text."""

NO_NAME: Final = "the call has no name"
NOT_AN_OBJECT: Final = "the arguments are not a JSON object"
BAD_NAME: Final = "the name is not a string"


@mypyc_attr(allow_interpreted_subclasses=True)
class JsonCallScanner(StreamScanner):
    """Scans envelopes. A subclass opens a call with `_open`, then sets the state to `_envelope`; when the envelope is
    done `_envelope_done` goes on, and `_fault` deals with what is no envelope."""

    name_keys: ClassVar[frozenset[str]] = frozenset({"name"})
    arguments_keys: ClassVar[frozenset[str]] = frozenset({"arguments", "parameters"})
    id_keys: ClassVar[frozenset[str]] = frozenset({"id"})

    # What a subclass decides

    def _envelope_done(self) -> None:
        """The object, or the array of objects, is whole."""
        raise NotImplementedError

    def _fault(self, reason: str) -> None:
        """What was opened is no call."""
        raise NotImplementedError

    # States

    def _envelope(self) -> bool:
        """Before the first object."""
        self._in_array = False
        char = self._next_char()
        if char == "":
            return False
        if char == "[":
            self._in_array = True
            self._pos += 1
            self._state = self._array_item
        elif char == "{":
            self._open_object()
        else:
            self._fault(f"{char!r} where a JSON object was expected")
        return True

    def _array_item(self) -> bool:
        char = self._next_char()
        if char == "":
            return False
        if char == "{":
            self._open_object()
        elif char == ",":
            self._pos += 1
        elif char == "]":
            self._pos += 1
            self._envelope_done()
        else:
            if self._raw is None:  # behind an object of the array
                self._open(self._pos)
            self._fault(f"{char!r} where a JSON object was expected")
        return True

    def _open_object(self) -> None:
        if self._raw is None:  # the second or a later object of an array
            self._open(self._pos)
        self._pos += 1
        self._name = self._call_id = ""
        self._waiting: list[str] = []
        self._has_arguments = False
        self._state = self._key

    def _key(self) -> bool:
        char = self._next_char()
        if char == "":
            return False
        if char == "}":
            self._pos += 1
            return self._object_done()
        if char == ",":
            self._pos += 1
            return True
        self._reader = JsonReader()
        self._collected = ""
        self._state = self._in_key if char in "\"'" else self._in_bare_key
        return True

    def _in_bare_key(self) -> bool:
        """A key without quotes."""
        end = _BARE_KEY(self._text, self._pos).end()
        if end == self._pos or end - self._pos > LONGEST_NAME:
            self._fault(f"{self._text[end : end + 1]!r} where a key was expected")
            return True
        if end == len(self._text):
            return False
        self._collected = self._text[self._pos : end]
        self._pos = end
        self._state = self._colon
        return True

    def _in_key(self) -> bool:
        return self._collect_string(self._colon)

    def _colon(self) -> bool:
        char = self._next_char()
        if char == "":
            return False
        if char != ":":
            self._fault(f"{char!r} where a colon was expected")
            return True
        self._pos += 1
        key = self._collected
        self._reader = JsonReader()
        self._collected = ""
        if key in self.name_keys and not self._name:
            self._state = self._name_begin
        elif key in self.arguments_keys and not self._has_arguments:
            self._state = self._arguments_begin
        elif key in self.id_keys:
            self._state = self._id_begin
        else:
            self._state = self._in_other
        return True

    def _name_begin(self) -> bool:
        char = self._next_char()
        if char == "":
            return False
        if char in "\"'":
            self._state = self._in_name
        else:
            self._fault(BAD_NAME)
        return True

    def _in_name(self) -> bool:
        return self._collect_string(self._name_done)

    def _name_done(self) -> bool:
        self._name = self._collected
        self._state = self._key
        if not self._name:
            self._fault(NO_NAME)
            return True
        self._start(self._name, self._call_id, self._pos)
        if self._waiting:
            self._delta("".join(self._waiting), self._pos)
        return True

    def _id_begin(self) -> bool:
        """An id is kept when it is a string; anything else is passed over."""
        char = self._next_char()
        if char == "":
            return False
        self._state = self._in_id if char in "\"'" else self._in_other
        return True

    def _in_id(self) -> bool:
        return self._collect_string(self._id_done)

    def _id_done(self) -> bool:
        self._call_id = self._collected
        self._state = self._key
        return True

    def _in_other(self) -> bool:
        self._pos, _ = self._reader.read(self._text, self._pos)
        return self._value_done()

    def _arguments_begin(self) -> bool:
        char = self._next_char()
        if char == "":
            return False
        self._has_arguments = True
        if char == "{":
            self._state = self._in_arguments
        elif char in "\"'":
            self._inner = JsonReader()
            self._inner_text = self._inner_fault = ""
            self._in_quotes = False
            self._state = self._in_stringified
        elif char in "nN":
            self._has_arguments = False
            self._state = self._in_null
        else:
            self._fault(NOT_AN_OBJECT)
        return True

    def _in_null(self) -> bool:
        """``null`` for a call without arguments."""
        self._pos, word = self._reader.read(self._text, self._pos)
        if word and word != "null":
            self._fault(NOT_AN_OBJECT)
            return True
        return self._value_done()

    def _in_arguments(self) -> bool:
        reader = self._reader
        self._pos, fragment = reader.read(self._text, self._pos)
        if fragment:
            if self._name:
                self._delta(fragment, reader.settled)
            else:
                self._waiting.append(fragment)
        return self._value_done() if reader.done or reader.fault else False

    def _in_stringified(self) -> bool:
        """Arguments as a JSON string: what the string spells is read as JSON in its turn, to the end of the string
        even where it is none, so that scanning goes on at the same place wherever the output is cut."""
        reader = self._reader
        self._pos, fragment = reader.read(self._text, self._pos)
        inner = self._inner
        spelled = self._inner_text + self._spelled(fragment, reader.done)
        read, json_text = inner.read(spelled, 0)
        self._inner_text = "" if inner.done or inner.fault else spelled[read:]
        if json_text:
            # Covers nothing: which characters spelled it depends on escapes; the next event covers the string.
            self._argue(json_text, self._mark - self._base)
        if inner.fault or (inner.done and spelled[read:].strip()) or (reader.done and not inner.done):
            self._inner_fault = self._inner_fault or inner.fault or NOT_AN_OBJECT
        if reader.done and self._inner_fault:
            self._fault(self._inner_fault)
            return True
        return self._value_done()

    def _spelled(self, fragment: str, whole: bool) -> str:
        """What a fragment of a JSON string spells."""
        if fragment and not self._in_quotes:
            self._in_quotes = True
            fragment = fragment[1:]
        return str(parse(f'"{fragment[:-1] if whole else fragment}"'))

    # Steps

    def _argue(self, fragment: str, end: int) -> None:
        if self._name:
            self._delta(fragment, end)
        else:
            self._waiting.append(fragment)

    def _value_done(self) -> bool:
        if self._reader.fault:
            self._fault(self._reader.fault)
            return True
        if self._reader.done:
            self._member_done()
            return True
        return False

    def _member_done(self) -> None:
        """A key and its value are whole."""
        self._state = self._key

    def _object_done(self) -> bool:
        if not self._name:
            self._fault(NO_NAME)
            return True
        if not self._has_arguments:
            self._delta("{}", self._pos)
        if not self._end(self._pos):
            self._fault(NOT_AN_OBJECT)
            return True
        if self._in_array:
            self._state = self._array_item
        else:
            self._envelope_done()
        return True

    def _collect_string(self, then: Callable[[], bool]) -> bool:
        """Read one string into `_collected`, then go on with ``then``."""
        reader = self._reader
        self._pos, fragment = reader.read(self._text, self._pos)
        if len(self._collected) <= LONGEST_NAME:
            self._collected += fragment
        if not reader.done and not reader.fault:
            return False
        if reader.fault or len(self._collected) > LONGEST_NAME:
            self._fault(reader.fault or "a name without end")
            return True
        self._collected = str(parse(self._collected))
        self._state = then
        return True

    def _next_char(self) -> str:
        self._pos = _SPACE(self._text, self._pos).end()
        return self._text[self._pos : self._pos + 1]
