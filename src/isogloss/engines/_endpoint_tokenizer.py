"""The vocabulary of a llama.cpp server, read over HTTP, for when its model's file is not at hand."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, TypeVar

import httpx
import msgspec

from isogloss.engines._llama_stream import TokenProbability
from isogloss.errors import EngineUnavailableError
from isogloss.tokenizers import Tokenizer
from isogloss.tokenizers._vocabulary import Vocabulary, end_tokens_by_name

_MARKUP = re.compile(r"<[^\s<>]*[^\W\d_][^\s<>]*>|\[/?[A-Z_]+\]")
_EVERY_TOKEN = 1 << 24
_Answer = TypeVar("_Answer")


class _Completion(msgspec.Struct):
    completion_probabilities: list[TokenProbability]


class _Tokens(msgspec.Struct):
    tokens: list[int]


class _Text(msgspec.Struct):
    content: str


def endpoint_tokenizer(client: httpx.Client, name: str, end_of_turn: str) -> Tokenizer:
    """Read the vocabulary of the server that ``client`` talks to.

    The bytes of all tokens come from one request for the probabilities of all of them. Encoding is the server's: each
    call of ``encode`` is a round trip. ``end_of_turn`` is the spelling of a token that ends a turn. Raises
    `EngineUnavailableError`.
    """
    endpoint = _Endpoint(client)
    tokens = endpoint.token_bytes()
    control, user_defined = endpoint.special_tokens(tokens)
    for text, token in control.items():
        tokens[token] = text.encode()
    special = {**control, **user_defined}
    ends = {*end_tokens_by_name(special), *(token for text, token in special.items() if text == end_of_turn)}
    return Vocabulary(name, tokens, special, _Encoder(endpoint, user_defined).encode, end_tokens=ends)


class _Encoder:
    """llama.cpp finds tokens of the type "user defined" (``<think>`` in some models) even in ordinary text. Where it
    does, the text is encoded in parts that do not spell them."""

    def __init__(self, endpoint: _Endpoint, user_defined: dict[str, int]) -> None:
        self._endpoint = endpoint
        self._forbidden = frozenset(user_defined.values())
        spelled = "|".join(re.escape(text) for text in user_defined)
        self._spelled = re.compile(f"(?={spelled})" if spelled else r"(?!)")

    def encode(self, text: str) -> list[int]:
        ids = self._endpoint.tokenize(text)
        if self._forbidden.isdisjoint(ids):
            return ids
        cuts = [0, *(match.start() + 1 for match in self._spelled.finditer(text)), len(text)]
        parts = [text[start:end] for start, end in pairwise(cuts) if start < end]
        return [token for part in parts for token in self._endpoint.tokenize(part)]


class _Endpoint:
    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def tokenize(self, text: str, *, parse_special: bool = False) -> list[int]:
        body = {"content": text, "add_special": False, "parse_special": parse_special}
        return self._post("/tokenize", body, _Tokens).tokens

    def token_bytes(self) -> list[bytes]:
        """The bytes by id; of control tokens perhaps none."""
        body = {"prompt": [0], "n_predict": 1, "n_probs": _EVERY_TOKEN, "cache_prompt": False}
        entries = self._post("/completion", body, _Completion).completion_probabilities[0].top_logprobs
        tokens = [b""] * (1 + max(entry.id for entry in entries))
        for entry in entries:
            tokens[entry.id] = bytes(entry.bytes)
        return tokens

    def special_tokens(self, tokens: list[bytes]) -> tuple[dict[str, int], dict[str, int]]:
        """Control tokens, and user-defined ones that look like markup.

        A server that does not write control tokens gives them no bytes; one that does (``--special``) is asked which of
        those that look like markup it reads as tokens only when told to.
        """
        silent = [token for token, data in enumerate(tokens) if not data]
        control = dict(zip(self._spellings(silent, tokens), silent, strict=True)) if silent else {}
        markup = {
            text: token
            for token, data in enumerate(tokens)
            if data and _MARKUP.fullmatch(text := data.decode("utf-8", "replace"))
        }
        told, untold = (self._found(markup, parse_special) for parse_special in (True, False))
        control |= {text: token for text, token in markup.items() if token in told and token not in untold}
        user_defined = {text: token for text, token in markup.items() if token in untold and text[0] == "<"}
        return control, user_defined

    def _found(self, spellings: Iterable[str], parse_special: bool) -> set[int]:
        return set(self.tokenize("\n".join(spellings), parse_special=parse_special))

    def _spellings(self, silent: list[int], tokens: list[bytes]) -> list[str]:
        newline = tokens.index(b"\n")
        ids = [each for token in silent for each in (token, newline)]
        return self._post("/detokenize", {"tokens": ids}, _Text).content.split("\n")[: len(silent)]

    def _post(self, path: str, body: Any, kind: type[_Answer]) -> _Answer:
        try:
            response = self._client.post(path, json=body)
            response.raise_for_status()
            return msgspec.json.decode(response.content, type=kind)
        except (httpx.HTTPError, msgspec.DecodeError) as error:
            raise EngineUnavailableError(f"llama.cpp's server does not tell its vocabulary: {path}: {error}") from error
