"""A JSON value on its way, byte by byte, under the eye of its guards.

`JsonWatch` reads what a grammar has already found to be well-formed JSON, so it only keeps what the guards need: which
objects and arrays are open, the keys and items they hold, and where the value at hand began. It can tell whether bytes
may follow without taking them, and go back to an earlier place.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Literal

import msgspec
from jsonschema_rs import CanonicalSchema
from jsonschema_rs.canonical.json import to_string

from isogloss.schema.decimals import MAXIMUM_DIGITS
from isogloss.schema.guards import Guard, Guards, ValueType

_STRING_STOP = re.compile(rb'["\\]')
_NUMBER_END = re.compile(rb"[^0-9eE+.-]")
_SIGNIFICANT = re.compile(rb"[^ \t\r\n:]")
_ESCAPES = frozenset(rb"u")
_ESCAPABLE = re.compile(r"[^\w .-]", re.ASCII)
LONGEST_NUMBER = 2 * MAXIMUM_DIGITS + 8
"""Characters of one number."""


class Violation(msgspec.Struct, frozen=True):
    """Why bytes may not follow: the JSON pointer of the value and the reason."""

    pointer: str
    reason: str


class _Container:
    """An open object or array. Lists only grow; a `_Place` says how much of them counts, so going back is free."""

    __slots__ = ("guard", "has_escapable", "is_object", "known", "names", "outer", "start")

    def __init__(self, outer: _Container | None, start: int, guard: Guard | None, *, is_object: bool) -> None:
        self.outer = outer
        self.start = start
        self.guard = guard
        self.is_object = is_object
        self.names: list[str] = []
        """Keys, or unique items as canonical JSON, in the order in which they came."""
        self.known: dict[str, int] = {}
        """The position of each in `names`."""
        self.has_escapable = False
        """Whether some name has a character that may be spelled by an escape."""

    def holds(self, name: str, count: int) -> bool:
        return self.known.get(name, count) < count

    def add(self, name: str, count: int) -> None:
        for stale in self.names[count:]:
            del self.known[stale]
        del self.names[count:]
        self.known[name] = count
        self.names.append(name)
        self.has_escapable = self.has_escapable or _ESCAPABLE.search(name) is not None


class _Place(msgspec.Struct, frozen=True):
    """Where in a value one is."""

    length: int = 0
    """Bytes so far."""
    container: _Container | None = None
    counts: tuple[Any, ...] | None = None
    """Members begun in the container, and the same of the containers around it, as a linked list."""
    mode: str = "value"
    """``value`` (one may begin), ``string``, ``key``, ``number``, ``word`` or ``after`` (one has ended)."""
    start: int = 0
    """Where the string, number or word at hand began."""
    escaped: bool = False
    """Whether a backslash came last."""
    node: CanonicalSchema | None = None
    """Where in the schema the value at hand is."""


class JsonWatch:
    """One value and its guards."""

    def __init__(self, guards: Guards) -> None:
        self.guards = guards
        self._text = bytearray()
        root = guards.plan.root() if guards.plan else None
        self._places = [_Place(node=root)]
        self.violation: Violation | None = None
        """Why the last bytes that were refused may not follow."""
        self.verdicts: dict[tuple[int, bytes], bool] = {}
        """Whether values that end with some bytes from here on pass."""

    def copy(self) -> JsonWatch:
        """A watch at the same place that goes its own way."""
        twin = JsonWatch.__new__(JsonWatch)
        twin.guards = self.guards
        twin._text = bytearray(self._text)
        copies: dict[int, _Container] = {}
        twin._places = [_transplanted(place, copies) for place in self._places]
        twin.violation = self.violation
        twin.verdicts = {}
        return twin

    def __len__(self) -> int:
        """How many pieces have been taken."""
        return len(self._places) - 1

    def take(self, piece: bytes) -> bool:
        """Go on by some bytes, up to the end of the value; where a guard forbids them nothing happens and `violation`
        says why."""
        length = len(self._text)
        self._text += piece
        place = _Reader(self, self._places[-1], commit=True).read(length)
        if place is None:
            del self._text[length:]
            return False
        del self._text[place.length :]
        self._places.append(place)
        self.verdicts.clear()
        return True

    def allows(self, piece: bytes) -> bool:
        """Whether `take` would take these bytes."""
        length = len(self._text)
        self._text += piece
        try:
            return _Reader(self, self._places[-1], commit=False).read(length) is not None
        finally:
            del self._text[length:]

    def may_end(self) -> bool:
        """Whether no guard forbids that the value ends here: a number at the root has no other end."""
        place = self._places[-1]
        if place.mode != "number" or place.container is not None:
            return True
        if self._text[-1] in b"eE+-.":
            return False
        return _Reader(self, place, commit=False).end_of_number(len(self._text)) is not None

    def go_back(self, count: int) -> None:
        """Forget the last ``count`` pieces."""
        if count:
            self.verdicts.clear()
            del self._places[len(self._places) - count :]
            del self._text[self._places[-1].length :]

    # What decides which tokens need a look ---------------------------------------------------------------------------

    @property
    def place(self) -> _Place:
        return self._places[-1]

    @property
    def is_over(self) -> bool:
        """Whether the value has ended."""
        place = self.place
        return place.container is None and place.mode == "after"

    def open_text(self) -> bytes:
        """The bytes of the string or key at hand, without its opening quote."""
        return bytes(self._text[self.place.start + 1 :])

    def earlier_keys(self) -> dict[str, int] | None:
        """The keys that may not come again, where a key is at hand."""
        place = self.place
        if place.mode != "key" or place.container is None or not self.guards.open_keys:
            return None
        return place.container.known

    def known_names(self) -> Iterator[dict[str, int]]:
        """The keys of every object that is open, the innermost first, and some that were taken back."""
        container = self.place.container
        while container is not None:
            if container.is_object and container.known:
                yield container.known
            container = container.outer

    def may_repeat_by_escapes(self) -> bool:
        """Whether the key at hand could become an earlier one by an escape."""
        container = self.place.container
        return container is not None and container.has_escapable

    def guarded_scalar(self) -> bool:
        """Whether a guard has a word when the scalar at hand ends, or one that begins here."""
        plan, place = self.guards.plan, self.place
        if not plan:
            return False
        container = place.container
        if container is not None and container.guard is not None and not container.is_object:
            return container.guard.unique or plan.leads(container.guard.item(self._upcoming()))
        return plan.leads(place.node)

    def guarded_around(self) -> bool:
        """Whether a guard has a word when some object or array that is open closes, or has another item."""
        container = self.place.container
        while container is not None:
            if container.guard is not None and (container.guard.checks or container.guard.unique):
                return True
            container = container.outer
        return False

    def earlier_items_only(self) -> dict[str, int] | None:
        """The items, as canonical JSON, that may not come again, where nothing else is asked of the string at hand."""
        plan, container = self.guards.plan, self.place.container
        if (
            not plan
            or container is None
            or container.guard is None
            or container.is_object
            or not container.guard.unique
        ):
            return None
        return None if plan.leads(container.guard.item(self._upcoming())) else container.known

    def _upcoming(self) -> int:
        """The index of the item at hand, or of the one that may begin here."""
        place = self.place
        begun = 0 if place.counts is None else int(place.counts[0])
        return begun if place.mode in ("value", "after") else begun - 1

    def has_exponent(self) -> bool:
        """Whether the number at hand has come to its exponent."""
        return b"e" in self._text[self.place.start :].lower()

    def number_length(self) -> int:
        """The length of the number at hand so far, 0 for none."""
        place = self.place
        return len(self._text) - place.start if place.mode == "number" else 0


def _transplanted(place: _Place, copies: dict[int, _Container]) -> _Place:
    return msgspec.structs.replace(place, container=_copied(place.container, copies))


def _copied(container: _Container | None, copies: dict[int, _Container]) -> _Container | None:
    chain = []
    while container is not None and id(container) not in copies:
        chain.append(container)
        container = container.outer
    found = None if container is None else copies[id(container)]
    for original in reversed(chain):
        twin = _Container(found, original.start, original.guard, is_object=original.is_object)
        twin.names = list(original.names)
        twin.known = dict(original.known)
        twin.has_escapable = original.has_escapable
        copies[id(original)] = found = twin
    return found


class _Reader:
    """One reading of some bytes from a place. Without ``commit`` what is open stays as it was."""

    def __init__(self, watch: JsonWatch, place: _Place, *, commit: bool) -> None:
        self.watch = watch
        self.text = watch._text
        self.guards = watch.guards
        self.commit = commit
        self.container = place.container
        self.counts = place.counts
        self.mode = place.mode
        self.start = place.start
        self.escaped = place.escaped
        self.node = place.node
        self.added: set[tuple[int, str]] = set()

    def read(self, at: int) -> _Place | None:
        """The place after the text from ``at`` on, None where a guard forbids it."""
        text = self.text
        end = len(text)
        while at < end:
            mode = self.mode
            if mode == "after" and self.container is None:
                break  # the value is over
            if mode in ("string", "key"):
                found = self._string(at, end)
            elif mode == "number":
                found = self._number(at, end)
            elif mode == "word":
                found = self._word(at, end)
            else:
                found = self._structure(at, end)
            if found is None:
                return None
            at = found
        return _Place(at, self.container, self.counts, self.mode, self.start, self.escaped, self.node)

    def end_of_number(self, end: int) -> bool | None:
        return True if self._closed("number", self.start, end) else None

    def _string(self, at: int, end: int) -> int | None:
        if self.escaped:
            self.escaped = False
            if self.mode == "key" and not self.guards.escaped_keys and self.text[at] in _ESCAPES:
                self._refuse("Expected a key without `\\u` escapes")
                return None
            return at + 1
        match = _STRING_STOP.search(self.text, at, end)
        if match is None:
            return end
        at = match.start()
        if self.text[at] == 0x5C:
            self.escaped = True
            return at + 1
        ended = self._end_of_key(at + 1) if self.mode == "key" else self._closed("string", self.start, at + 1)
        return at + 1 if ended else None

    def _end_of_key(self, end: int) -> bool:
        container = self.container
        name = _decoded(bytes(self.text[self.start : end]))
        self.mode = "value"
        if container is None:
            return True
        self.node = container.guard.member(name) if container.guard is not None else None
        count = self._count() - 1
        if not self.guards.open_keys:
            self._add(container, name, count)
        elif container.holds(name, count) or (id(container), name) in self.added:
            self.mode = "key"
            return self._refuse("Expected each key once", name)
        else:
            self._add(container, name, count)
        return True

    def _number(self, at: int, end: int) -> int | None:
        match = _NUMBER_END.search(self.text, at, end)
        stop = end if match is None else match.start()
        if self.guards.open_numbers and not _is_bounded(self.text[self.start : stop]):
            self._refuse(f"Expected a number of at most {LONGEST_NUMBER} characters that is finite as a double")
            return None
        if match is None:
            return end
        return stop if self._closed("number", self.start, stop) else None

    def _word(self, at: int, end: int) -> int | None:
        while at < end and 0x61 <= self.text[at] <= 0x7A:
            at += 1
        word = bytes(self.text[self.start : at])
        if at == self.start:
            return end  # no JSON: nothing that a grammar of it lets through
        if word in (b"true", b"false", b"null"):
            return at if self._closed("null" if word == b"null" else "boolean", self.start, at) else None
        return at

    def _structure(self, at: int, end: int) -> int | None:
        match = _SIGNIFICANT.search(self.text, at, end)
        if match is None:
            return end
        at = match.start()
        byte = self.text[at]
        if byte == 0x22:
            is_key = self.mode != "value"
            self.mode, self.start = ("key" if is_key else "string"), at
            if is_key:
                self._begin()
            else:
                self._begin_item()
        elif byte in b"{[":
            self._begin_item()
            self._open(at, is_object=byte == 0x7B)
        elif byte in b"}]":
            return at + 1 if self._close_container(at + 1) else None
        elif byte == 0x2C:
            self._after_comma()
        else:
            self._begin_item()
            self.mode, self.start = ("number" if byte in b"-0123456789" else "word"), at
            return at if self.mode == "word" else at + 1
        return at + 1

    # Containers ------------------------------------------------------------------------------------------------------

    def _count(self) -> int:
        return 0 if self.counts is None else int(self.counts[0])

    def _begin(self) -> None:
        if self.counts is not None:
            self.counts = (self.counts[0] + 1, self.counts[1])

    def _begin_item(self) -> None:
        """A value begins: in an array it is the next item."""
        container = self.container
        if container is not None and not container.is_object:
            self.node = container.guard.item(self._count()) if container.guard is not None else None
            self._begin()

    def _after_comma(self) -> None:
        container = self.container
        self.mode = "value" if container is not None and not container.is_object else "members"

    def _open(self, at: int, *, is_object: bool) -> None:
        plan = self.guards.plan
        guard = plan.guard(self.node, "object" if is_object else "array") if plan else None
        self.container = _Container(self.container, at, guard, is_object=is_object)
        self.counts = (0, self.counts)
        self.mode = "members" if is_object else "value"

    def _close_container(self, end: int) -> bool:
        container, counts = self.container, self.counts
        if container is None or counts is None:
            return True
        guard = container.guard
        if guard is not None and guard.checks and not self._admits(guard, container.start, end):
            return self._refuse("Expected a value that satisfies its schema")
        self.container, self.counts = container.outer, counts[1]
        return self._ended(container.start, end)

    def _closed(self, value_type: ValueType, start: int, end: int) -> bool:
        """A scalar has ended."""
        plan = self.guards.plan
        if plan:
            guard = plan.guard(self.node, value_type)
            if guard is not None and guard.checks and not self._admits(guard, start, end):
                return self._refuse("Expected a value that satisfies its schema")
        return self._ended(start, end)

    def _admits(self, guard: Guard, start: int, end: int) -> bool:
        """Whether a whole value passes; told once for all the pieces that end it in the same way."""
        key = (start, bytes(self.text[self.watch.place.length : end]))
        verdicts = self.watch.verdicts
        if key not in verdicts:
            verdicts[key] = guard.admits(_value(self.text, start, end))
        return verdicts[key]

    def _ended(self, start: int, end: int) -> bool:
        container = self.container
        self.mode = "after"
        self.node = None
        if container is None or container.is_object or container.guard is None or not container.guard.unique:
            return True
        canonical = to_string(_value(self.text, start, end))
        count = self._count() - 1
        if container.holds(canonical, count) or (id(container), canonical) in self.added:
            return self._refuse("Expected items that all differ, got one again")
        self._add(container, canonical, count)
        return True

    def _add(self, container: _Container, name: str, count: int) -> None:
        if self.commit:
            container.add(name, count)
        else:
            self.added.add((id(container), name))

    # Refusals --------------------------------------------------------------------------------------------------------

    def _refuse(self, reason: str, name: str | None = None) -> Literal[False]:
        """Note why; ``name`` is the key at hand where the container does not hold it."""
        parts = []
        container, counts = self.container, self.counts
        while container is not None and counts is not None:
            position = counts[0] - 1
            if not container.is_object:
                parts.append(str(max(position, 0)))
            elif name is not None:
                parts.append(name)
            elif 0 <= position < len(container.names):
                parts.append(container.names[position])
            container, counts, name = container.outer, counts[1], None
        self.watch.violation = Violation("".join(f"/{_escaped(part)}" for part in reversed(parts)), reason)
        return False


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _value(text: bytearray, start: int, end: int) -> Any:
    return json.loads(text[start:end])


def _is_bounded(text: bytearray) -> bool:
    if len(text) > LONGEST_NUMBER:
        return False
    return b"e" not in text.lower() or text[-1:] in b"eE+-" or math.isfinite(float(text))


def _decoded(raw: bytes) -> str:
    if b"\\" in raw:
        return str(json.loads(raw))
    return raw[1:-1].decode("utf-8", "surrogatepass")
