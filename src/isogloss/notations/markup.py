"""Raw text between tags: a string as it is, any other value as JSON text.

What was meant is decided by the schema (`isogloss.schema.coercion`), so that the same characters are the string ``"5"``
for one parameter and the number 5 for another. A value is written so that it reads back as itself, or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from isogloss._compiled import mypyc_attr
from isogloss.errors import UnrepresentableError
from isogloss.notations.json import write as write_json
from isogloss.schema.coercion import coerce, streams_as_string
from isogloss.schema.values import read_json
from isogloss.schema.view import SchemaView


def write(value: Any, view: SchemaView | None) -> str:
    """The text for ``value`` where the schema is ``view``. Raises `UnrepresentableError` when none reads back as it."""
    candidates = [value, spaced(value)] if isinstance(value, str) else [spaced(value)]
    for text in candidates:
        if same(coerce(view, text), value):
            return text
    raise UnrepresentableError(f"No text between tags reads back as {write_json(value)[:80]} under its schema")


def write_declared(value: Any, view: SchemaView | None) -> str:
    """The text for ``value`` between tags that say whether it is a string. Raises `UnrepresentableError`."""
    if isinstance(value, str):
        return value
    text = spaced(value)
    if not MarkupReader(view, is_string=False).reads(text, value):
        raise UnrepresentableError(f"{text[:80]} between tags does not read back as itself under its schema")
    return text


def spaced(value: Any) -> str:
    """JSON as chat templates write it: a blank behind commas and colons."""
    return write_json(value, (", ", ": "))


def same(one: Any, other: Any) -> bool:
    """Equal as JSON values: 1 and True differ, and so do 1 and 1.0."""
    if type(one) is str or type(other) is str:
        return type(one) is type(other) and bool(one == other)
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def escape_tags(text: str) -> str:
    """JSON text without ``<``, for values that would otherwise hold a closing tag."""
    return text.replace("<", "\\u003c")


@mypyc_attr(allow_interpreted_subclasses=True)
class MarkupReader:
    """Reads one raw value, given in pieces without the tags around it, and gives JSON text.

    A value that can only be a string streams; any other is typed when it is complete. ``is_string`` where the
    tag itself says which of the two it is: what is no string is JSON, and where the schema permits strings it has a
    say only if that does not parse.
    """

    __slots__ = ("_is_json", "_pieces", "_view", "streams")

    def __init__(self, view: SchemaView | None, *, is_string: bool | None = None) -> None:
        self._view = view
        self._pieces: list[str] = []
        self._is_json = is_string is False
        self.streams = streams_as_string(view) if is_string is None else is_string

    @property
    def is_blank(self) -> bool:
        """Whether there has been nothing but white space in a value that does not stream."""
        return not any(map(str.strip, self._pieces))

    def begin(self) -> str:
        """JSON text at the opening tag."""
        return '"' if self.streams else ""

    def read(self, text: str) -> str:
        """JSON text that one more piece settles."""
        if self.streams:
            return json_string(text)
        self._pieces.append(text)
        return ""

    def end(self) -> str:
        """JSON text at the closing tag."""
        return '"' if self.streams else write_json(self._typed("".join(self._pieces)))

    def reads(self, text: str, value: Any) -> bool:
        """Whether ``text`` is read as ``value``. For a reader that has read nothing yet."""
        return same(text if self.streams else self._typed(text), value)

    def _typed(self, raw: str) -> Any:
        if self._is_json and (self._view is None or self._view.allows_string):
            try:
                return read_json(raw.strip())
            except ValueError:
                pass
        return coerce(self._view, raw)


def json_string(text: str) -> str:
    """``text`` as the inside of a JSON string."""
    if text.isprintable() and '"' not in text and "\\" not in text:  # most pieces of a stream
        return text
    return _encode(text)[1:-1]


_encode: Final[Callable[[str], str]] = json.encoder.encode_basestring
