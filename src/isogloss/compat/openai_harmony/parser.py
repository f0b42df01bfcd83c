"""Tokens to messages, one token at a time or many.

Strict, it is the package's parser to the letter. Forgiving, it reads on through any damage and says in ``repairs``
what it put right; of what a model wrote nothing is lost.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from isogloss.compat.openai_harmony.errors import HarmonyError
from isogloss.compat.openai_harmony.headers import read_header_strictly
from isogloss.compat.openai_harmony.messages import Author, Message, Role, TextContent
from isogloss.compat.openai_harmony.vocabulary import (
    CHANNEL,
    CONSTRAIN,
    END_OF_TEXT,
    MESSAGE,
    START,
    STOPS,
    checked_id,
    checked_ids,
)
from isogloss.dialects._harmony_header import Header, header_length, read_header

if TYPE_CHECKING:
    from isogloss.compat.openai_harmony.encoding import HarmonyEncoding

_REPLACEMENT = "\ufffd"


class StreamState(Enum):
    """Where the parser is: in front of a message, in its header or in its text."""

    EXPECT_START = "ExpectStart"
    HEADER = "Header"
    CONTENT = "Content"


class TokenRepair(NamedTuple):
    """What was put right, and at which of the tokens fed."""

    position: int
    reason: str


class _Finished(NamedTuple):
    header: Header
    text: str
    stop: int | None


_NOBODY = Header("")
"""The header of no message."""

_EXPECT_START, _IN_HEADER, _IN_CONTENT = StreamState.EXPECT_START, StreamState.HEADER, StreamState.CONTENT


class StreamableParser:
    """Parses the messages of a completion.

    ``role`` is whose message the tokens begin in, behind ``<|start|>`` and the role; ``None`` when they begin with
    ``<|start|>``. After every token ``last_content_delta`` is the text that it gave, ``None`` where it gave none;
    ``current_channel``, ``current_recipient`` and ``current_content_type`` are those of the message that is open.
    """

    __slots__ = (
        "_content",
        "_encoding",
        "_finished",
        "_header",
        "_header_tokens",
        "_is_slow",
        "_joined",
        "_parts",
        "_pending",
        "_role",
        "_state",
        "_strict",
        "_texts",
        "_tokens",
        "_unknown",
        "current_channel",
        "current_content_type",
        "current_recipient",
        "last_content_delta",
        "repairs",
    )

    def __init__(self, encoding: HarmonyEncoding, role: Role | None, *, strict: bool = True) -> None:
        self._role: str | None = role.value if role is not None else None
        self._encoding = encoding
        self._texts = encoding.vocabulary.texts if strict else encoding.vocabulary.unframed_texts
        self._strict = strict
        self._state = _EXPECT_START if role is None else _IN_HEADER
        self._is_slow = True
        """Whether the next token needs more than to be appended: all but plain text inside a message."""
        self._set_header(_NOBODY)
        self._header_tokens: list[int] = []
        self._parts: list[str] = []
        self._content = ""
        self._joined = 0
        self._pending = b""
        self._unknown = False
        self.last_content_delta: str | None = None
        self._tokens: list[int] = []
        self._finished: list[_Finished] = []
        self.repairs: list[TokenRepair] = []

    # -- feeding

    def process(self, token: int) -> StreamableParser:
        """Read one token. Raises `HarmonyError`, unless forgiving, for one that cannot stand here."""
        text = self._texts[token]
        if text is None or self._is_slow:
            token = checked_id(token, "token")
            self._tokens.append(token)
            self._step(token)
            return self
        self._tokens.append(token)
        self._parts.append(text)
        self.last_content_delta = text
        return self

    def process_many(self, tokens: Iterable[int]) -> StreamableParser:
        """Read any number of tokens. `last_content_delta` is then what they added to the message that is open."""
        ids = checked_ids(tokens)
        ends = _Positions(ids, self._texts.ends)
        finished, said = len(self._finished), len(self._parts)
        at = 0
        while at < len(ids):
            end = at + 1 if self._is_slow else ends.next(at)
            if end == at or not self._take_run(ids[at:end]):
                end = max(end, at + 1)
                for token in ids[at:end]:
                    self.process(token)
            at = end
        said = said if len(self._finished) == finished else 0
        self.last_content_delta = "".join(self._parts[said:]) or None
        return self

    def process_eos(self) -> StreamableParser:
        """The tokens are at an end. Raises `HarmonyError`, unless forgiving, in the middle of a header."""
        if self._state is _IN_CONTENT:
            self._finish(None)
        elif self._state is _IN_HEADER:
            if self._strict:
                raise HarmonyError("Unexpected EOS while waiting for message header to complete")
            self._recover(None)
        return self

    def _take_run(self, ids: list[int]) -> bool:
        """Read a run of text at once, unless it is no text by itself."""
        if self._is_slow:
            return False
        try:
            text = b"".join(map(self._encoding.vocabulary.bytes.__getitem__, ids)).decode()
        except (KeyError, UnicodeDecodeError):
            return False
        self._tokens += ids
        self._parts.append(text)
        return True

    def _step(self, token: int) -> None:
        if self._state is _EXPECT_START:
            self._expect_start(token)
        elif self._state is _IN_HEADER:
            self._extend_header(token)
        else:
            self._extend_content(token)

    # -- between messages

    def _expect_start(self, token: int) -> None:
        if token == START:
            self._open_header(self._role if self._strict else None)
        elif self._strict:
            raise HarmonyError(f"Unexpected token {token} while expecting start token {START}")
        elif token in STOPS or token == END_OF_TEXT:
            self._repair("one more stop after the end of a message was skipped")
        else:
            self._repair("the start of a message is missing")
            self._open_header("assistant")
            self._extend_header(token)

    def _open_header(self, role: str | None) -> None:
        self._state = _IN_HEADER
        self._role = role
        self._header_tokens = []

    # -- headers

    def _extend_header(self, token: int) -> None:
        if token == MESSAGE:
            self._end_header()
        elif self._strict:
            self._header_tokens.append(token)
        elif token in STOPS or token == END_OF_TEXT:
            self._recover(token)
        elif token == START:
            if self._header_text().strip() not in ("", self._role or "assistant"):
                self._recover(None)
            elif self._header_tokens or self._role is None:
                self._repair("one start too many was skipped")
            self._open_header(None)
        else:
            self._header_tokens.append(token)

    def _end_header(self) -> None:
        self._state = _EXPECT_START
        if self._strict:
            try:
                text = self._encoding.decode_utf8(self._header_tokens)
            except HarmonyError:
                raise HarmonyError("could not decode header") from None
            self._begin(read_header_strictly(text, self._role))
        else:
            self._begin(self._read_header(self._header_text()))

    def _begin(self, header: Header) -> None:
        self._set_header(header)
        self._role = None
        self._state = _IN_CONTENT
        self._is_slow = False

    def _set_header(self, header: Header) -> None:
        self._header = header
        self.current_channel: str | None = header.channel
        self.current_recipient: str | None = header.recipient
        self.current_content_type: str | None = header.content_type

    def _header_text(self) -> str:
        unknown = _REPLACEMENT.encode()
        data = [self._bytes_of(token) or unknown for token in self._header_tokens]
        return b"".join(data).decode("utf-8", "replace")

    def _read_header(self, text: str) -> Header:
        header, repairs = read_header(text, self._role or "")
        for reason in repairs:
            self._repair(reason)
        return header

    def _recover(self, stop: int | None) -> None:
        """The marker between header and text is missing: what begins like a header is one, the rest is text."""
        text = self._header_text()
        length = header_length(text)
        if text.strip() or self._role is None:
            self._repair("the marker between header and text is missing")
        if text[length:] or CHANNEL in self._header_tokens:
            self._finished.append(_Finished(self._read_header(text[:length]), text[length:], stop))
        self._state = _EXPECT_START
        self._role = None

    # -- text

    def _extend_content(self, token: int) -> None:
        if token in self._texts.ends:
            self._end_content(token)
            return
        data = None if self._unknown else self._bytes_of(token)
        if data is None:
            self._extend_by_unknown(token)
            return
        data = self._pending + data
        replaced = ""
        try:
            text, self._pending = data.decode(), b""
        except UnicodeDecodeError as error:
            text, self._pending = data[: error.start].decode(), data[error.start :]
            if error.reason != "unexpected end of data":
                replaced = _REPLACEMENT
                self._pending = data[error.end :]
        self._is_slow = self._pending != b""
        self._say(text, replaced)

    def _say(self, *parts: str) -> None:
        self._parts += [part for part in parts if part]
        self.last_content_delta = "".join(parts) or None

    def _extend_by_unknown(self, token: int) -> None:
        """Strict, an id outside the vocabulary hides the rest of the message; forgiving, only itself."""
        if self._strict:
            self._unknown = self._is_slow = True
            self.last_content_delta = None
            return
        self._repair(f"the id {token} is outside the vocabulary")
        self._say(self._flushed(), _REPLACEMENT)

    def _end_content(self, token: int) -> None:
        if token in STOPS:
            self._finish(token)
        elif token == END_OF_TEXT:
            self._repair("the end of the text ended a message")
            self._finish(token)
        elif token in (MESSAGE, CONSTRAIN):
            self._repair("a marker that has no place in a message was skipped")
            self._say(self._flushed())
        else:
            self._repair("the end of a message is missing")
            role = self._header.role
            self._finish(None)
            self._open_header(None if token == START else role)
            if token != START:
                self._header_tokens.append(token)

    def _flushed(self) -> str:
        """What is left of a character that was cut."""
        text = self._pending.decode("utf-8", "replace")
        self._pending = b""
        self._is_slow = False
        return text

    def _finish(self, stop: int | None) -> None:
        hidden = _REPLACEMENT if self._unknown else ""
        rest = self._flushed()
        self._finished.append(_Finished(self._header, self._text() + hidden + rest, stop))
        self.last_content_delta = None if self._strict else rest or None
        self._parts = []
        self._content = ""
        self._joined = 0
        self._unknown = False
        self._is_slow = True
        self._state = _EXPECT_START
        self._set_header(_NOBODY)

    def _text(self) -> str:
        """The text so far. Only new parts are joined: appending to a string that nothing else holds takes no copy."""
        if self._joined < len(self._parts):
            content, self._content = self._content, ""
            content += "".join(self._parts[self._joined :])
            self._content = content
            self._joined = len(self._parts)
        return self._content

    def _bytes_of(self, token: int) -> bytes | None:
        try:
            return self._encoding.vocabulary.bytes[token]
        except KeyError:
            return None

    def _repair(self, reason: str) -> None:
        self.repairs.append(TokenRepair(len(self._tokens) - 1, reason))

    # -- what was read

    @property
    def current_content(self) -> str:
        """The text so far of the message that is open, else nothing."""
        return self._text()

    @property
    def current_role(self) -> Role | None:
        """Whose message is open; before its header has been read, the role that was given for it."""
        role = self._header.role or self._role
        return None if role is None else _ROLES[role]

    @property
    def messages(self) -> list[Message]:
        """The finished messages, new objects at every reading."""
        return [_message(finished) for finished in self._finished]

    @property
    def stops(self) -> list[int | None]:
        """The token that ended each finished message, ``None`` where none did."""
        return [finished.stop for finished in self._finished]

    @property
    def tokens(self) -> list[int]:
        """All tokens that were fed."""
        return self._tokens.copy()

    @property
    def state(self) -> StreamState:
        return self._state

    @property
    def state_data(self) -> dict[str, Any]:
        """The state with what belongs to it: the tokens of the header, or the header and the tokens of the text."""
        data: dict[str, Any] = {"state": self._state.value}
        if self._state is _IN_HEADER:
            data["header_tokens"] = self._header_tokens.copy()
        elif self._state is _IN_CONTENT:
            header = self._header
            author = {"role": header.role} if header.name is None else {"role": header.role, "name": header.name}
            data["header"] = {
                "author": author,
                "recipient": header.recipient,
                "channel": header.channel,
                "content_type": header.content_type,
            }
            encode = self._encoding.vocabulary.tokenizer.encode
            data["content_tokens"] = [token for part in self._parts for token in encode(part)]
        return data

    def copy(self) -> StreamableParser:
        """A parser in the same state that goes its own way, for tokens that may be taken back."""
        twin = StreamableParser.__new__(StreamableParser)
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(twin, name, value.copy() if isinstance(value, list) else value)
        return twin

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> StreamableParser:
        return self.copy()


_ROLES = {role.value: role for role in Role}


def _message(finished: _Finished) -> Message:
    header = finished.header
    return Message(
        author=Author(role=_ROLES[header.role], name=header.name),
        content=[TextContent(text=finished.text)],
        channel=header.channel,
        recipient=header.recipient,
        content_type=header.content_type,
    )


class _Positions:
    """Where tokens of some kinds stand among many. Asked in ascending order, it looks at each token once a kind."""

    def __init__(self, ids: list[int], kinds: frozenset[int]) -> None:
        self._width = array("I").itemsize
        self._length = len(ids)
        self._data = array("I", ids).tobytes()
        self._next = {array("I", [kind]).tobytes(): -1 for kind in kinds}

    def next(self, at: int) -> int:
        """The first position from ``at`` on, or the number of tokens."""
        for kind, position in self._next.items():
            if position < at:
                self._next[kind] = self._find(kind, at)
        return min(self._next.values())

    def _find(self, kind: bytes, at: int) -> int:
        place = self._data.find(kind, at * self._width)
        while place != -1 and place % self._width:
            place = self._data.find(kind, place + 1)
        return self._length if place == -1 else place // self._width
