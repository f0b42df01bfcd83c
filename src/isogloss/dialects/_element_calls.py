"""Calls whose arguments are elements named after them, each tag behind a token that says it is one (`minimax_m3`).

Values are those of `isogloss.notations.elements`. Strings stream, however deep they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final, NamedTuple

from isogloss._compiled import mypyc_attr
from isogloss.dialects._element_tags import before_call, behind, element_syntax, matcher
from isogloss.dialects._invoke_calls import InvokeCallScanner
from isogloss.dialects._lexicon import Found
from isogloss.dialects._markers import Markers
from isogloss.dialects._scanner import Prose
from isogloss.messages import Tool
from isogloss.notations.elements import ITEM, ElementReader, inner_view, is_list
from isogloss.notations.json import write as write_json
from isogloss.schema.view import SchemaView

_DEEPEST: Final = 64


class _Container(NamedTuple):
    """An element with elements in it that is interrupted by one of those that has some itself."""

    name: str
    view: SchemaView | None
    is_list: bool
    keys: set[str]
    last: str
    position: int
    folds: bool


@mypyc_attr(allow_interpreted_subclasses=True)
class ElementCallScanner(InvokeCallScanner):
    """Scans one turn."""

    framed_by_tokens: ClassVar[bool] = True

    def __init__(
        self, token: str, markers: Markers, tools: Iterable[Tool], starts_in: str, control: frozenset[str]
    ) -> None:
        self._in_calls = False
        super().__init__(element_syntax(token), markers, tools, starts_in, control)
        self._behind = matcher(behind(token))
        self._before_tag = matcher(before_call(token))

    def _named(self, name: str, end: int, call_id: str = "") -> None:
        super()._named(name, end, call_id)
        self._outer: list[_Container] = []
        self._into("", self._view, is_list=False)

    def _into(self, name: str, view: SchemaView | None, *, is_list: bool) -> None:
        """From here on elements are those in ``name``; all of the call is one without a name."""
        self._name = name
        self._view = view
        self._is_list = is_list
        self._keys = set()
        self._separator = "[" if is_list else "{"
        self._last = ""
        self._position = 0
        self._folds = False
        self._held = ""
        """A value that is not told yet: another one of the same name would make a list of them."""

    def _settled(self) -> str:
        """What is held, which is now known to be the last of its name."""
        text = self._held + ("]" if self._folds else "")
        self._held = ""
        self._folds = False
        return text

    # -- between two elements

    def _in_call_parameter(self, found: Found) -> None:
        key = self.key_of(found)
        view = inner_view(self._view, key, self._position if self._is_list else None)
        lead = self._lead_to(key, view)
        self._keys.add(key)
        self._last = key
        self._position += 1
        self._separator = ","
        self._value_view = view
        self._value = ElementReader(view)
        self._delta(lead + self._value.begin(), found.end)
        self._state = self._in_value
        if found.match[0].endswith("/>"):
            self._value_closed(found.end)

    def _lead_to(self, key: str, view: SchemaView | None) -> str:
        """JSON text from the last value to that of ``key``."""
        if self._is_list:
            return self._settled() + self._separator
        if key == self._last and (self._held or self._folds) and (view is None or "array" in view.types):
            text = f"{'' if self._folds else '['}{self._held},"
            self._folds = True
            self._held = ""
            return text
        return f"{self._settled()}{self._separator}{write_json(key)}:"

    def _in_call_parameter_close(self, found: Found) -> None:
        """The end of an element with elements in it, or a closing tag too many."""
        if not self._outer:
            return
        if found.match["closed"] != self._name:
            self._fault(f"the closing tag of {found.match['closed']!r} in {self._name!r}")
            return
        self._delta(self._settled() + ("]" if self._is_list else "}"), found.end)
        outer = self._outer.pop()
        self._name, self._view, self._is_list, self._keys, self._last, self._position, self._folds = outer
        self._separator = ","

    def _call_closed(self, end: int) -> None:
        if self._outer:
            self._malformed(f"the element {self._name!r} was not closed", end)
            self._enter(self.text_prose)
            return
        rest = self._settled()
        if rest:
            self._delta(rest, end)
        super()._call_closed(end)

    # -- between two calls

    def _on_call(self, found: Found) -> None:
        self._in_calls = True
        super()._on_call(found)

    def _on_invoke(self, found: Found) -> None:
        self._in_calls = True
        super()._on_invoke(found)

    def _enter(self, prose: Prose, *, trim: bool = True) -> None:
        super()._enter(prose, trim=trim)
        if self._in_calls and prose is self.text_prose:
            self._state = self._behind_call

    def _behind_call(self) -> bool:
        """White space in front of the next call, or of the end of the block, whose token may be missing."""
        space = self._before_tag(self._text, self._pos, partial=True)
        if space is not None and space.partial and not self._final:
            return False
        self._in_calls = False
        self._state = self._prose
        if space is not None and not space.partial:
            self._pos = space.end()
        return True

    # -- in a value

    def end_of_value(self, text: str, at: int, key: str) -> Found | int:
        """Without its token, the closing tag of another element is text."""
        while True:
            found = super().end_of_value(text, at, key)
            if isinstance(found, int) or found.kind != "parameter_close":
                return found
            if found.match["closed"] == key or not found.match[0].startswith("</"):
                return found
            at = found.start + 1

    def _ends_value(self, found: Found) -> bool | None:
        if found.kind == "parameter_close":
            return self._closes(found)
        if found.kind == "next_parameter" and not self._value.streams:
            return True
        return super()._ends_value(found)

    def _closes(self, found: Found) -> bool | None:
        """Whether a closing tag is meant as one: that of the value, or another's that cannot be text of it."""
        closed, behind = found.match.group("closed", "behind")
        has_token = not found.match[0].startswith("</")
        if has_token and (self._may_close(closed) or not self._value.streams):
            return True
        if not has_token and closed != self._last:
            return False
        if behind is None:
            rest = self._behind(self._text, found.end, partial=True)
            return None if rest is not None and not self._final else False
        if not has_token:
            return bool(behind != f"/{closed}")
        return closed == self._name or behind in ("/invoke", "/tool_call") or self._misses(behind)

    def _may_close(self, closed: str) -> bool:
        """Whether a tag of that name closes the value. That of a key which no tool declares may be mistyped."""
        is_known = self._outer or (self._view is not None and self._last in self._view.properties)
        return closed == self._last or not is_known

    def _misses(self, key: str) -> bool:
        return key == ITEM if self._is_list else super()._misses(key)

    def _value_ended(self, found: Found) -> None:
        if found.kind == "parameter_close" and self._may_close(found.match["closed"]):
            self._pos = found.end
            self._value_closed(found.end)
        elif found.kind == "parameter_close":
            self._fault(f"a value that the closing tag of {found.match['closed']!r} closes")
        elif found.kind == "not_closed" and self._outer:
            self._fault(f"the element {self._last!r} was not closed")
        elif found.kind != "next_parameter" or self._value.streams:
            super()._value_ended(found)
        elif self._value.is_blank:
            self._descend(found)
        elif self._misses(self.key_of(found)):
            super()._value_ended(found)
        else:
            self._fault(f"text and elements in {self._last!r}")

    def _value_closed(self, end: int) -> None:
        if self._value.streams:
            self._delta(self._value.end(), end)
        else:
            self._held = self._value.end()
        self._state = self._between_parameters

    def _descend(self, found: Found) -> None:
        """The value is made of elements, the first of which begins here."""
        if len(self._outer) == _DEEPEST:
            self._fault("nested too deeply")
            return
        self._outer.append(
            _Container(self._name, self._view, self._is_list, self._keys, self._last, self._position, self._folds)
        )
        first = self.key_of(found)
        self._into(self._last, self._value_view, is_list=is_list(self._value_view, first))
        self._pos = found.start
        self._state = self._between_parameters

    def key_of(self, found: Found, group: str = "key") -> str:
        return str(found.match[group])
