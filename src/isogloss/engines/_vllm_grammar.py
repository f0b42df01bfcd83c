"""What a vLLM server constrains output with, and how it is told a grammar.

A server uses one of several libraries (``--structured-outputs-config``): with ``guidance`` it takes llguidance's Lark,
with ``xgrammar`` structural tags. Old versions, whose field has another name, ignore both without a word, so that a
server is asked for a text that no model would write by itself.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from isogloss.constraints.structural_tag import structural_tag
from isogloss.engines._endpoint import Endpoint
from isogloss.engines._protocol import GenerationRequest
from isogloss.errors import EngineCapabilityError, EngineError, EngineTimeoutError, EngineUnavailableError, GrammarError

REMEDY = 'start vLLM with --structured-outputs-config \'{"backend":"guidance"}\''
_DEMANDED = "qzj"
_PROBES = {
    "guidance": {"grammar": f'%llguidance {{}}\nstart: "{_DEMANDED}"'},
    "xgrammar": {
        "structural_tag": f'{{"type":"structural_tag","format":{{"type":"const_string","value":"{_DEMANDED}"}}}}'
    },
}
"""What a server takes as it should under one of the libraries only. The order matters: a server that was left to choose
(``auto``) keeps to the library of the first constrained request that it gets."""
_WITHIN = 120.0
"""Seconds. The first constrained request of a server's life takes long."""


class _Choice(msgspec.Struct):
    text: str


class _Completion(msgspec.Struct):
    choices: list[_Choice]


async def backend_of(endpoint: Endpoint, model: str) -> str:
    """The library. Raises `EngineCapabilityError` when the server has neither, and `EngineUnavailableError`."""
    for backend in _PROBES:
        if await _obeys(endpoint, model, backend):
            return backend
    raise EngineCapabilityError(
        f"vLLM's server at `{endpoint.shown}` does not hold its output to grammars: {REMEDY} "
        '(where it has a reasoning parser, with "enable_in_reasoning":true beside it), '
        "or open the engine with grammar=none to have answers verified instead"
    )


async def check_backend(endpoint: Endpoint, model: str, backend: str) -> None:
    """Raises `EngineCapabilityError` when the server does not constrain output with that library."""
    if not await _obeys(endpoint, model, backend):
        raise EngineCapabilityError(
            f"vLLM's server at `{endpoint.shown}` does not constrain output with `{backend}`: {REMEDY}"
        )


def structural_tag_of(request: GenerationRequest, special_tokens: Mapping[str, int]) -> str:
    """The grammar of a request as a structural tag, in JSON. Raises `EngineCapabilityError`."""
    if request.term is None:
        raise EngineCapabilityError(f"This vLLM server takes no grammar in Lark, only structural tags: {REMEDY}")
    try:
        return msgspec.json.encode(structural_tag(request.term, special_tokens)).decode()
    except GrammarError as error:
        raise EngineCapabilityError(f"{error.message}: {REMEDY}") from error


async def _obeys(endpoint: Endpoint, model: str, backend: str) -> bool:
    body = {
        "model": model,
        "prompt": "a",
        "max_tokens": 4 * len(_DEMANDED),
        "temperature": 0.0,
        "structured_outputs": _PROBES[backend],
    }
    try:
        content = await endpoint.ask("POST", "/v1/completions", body, within=_WITHIN)
        return msgspec.json.decode(content, type=_Completion).choices[0].text == _DEMANDED
    except (EngineUnavailableError, EngineTimeoutError):
        raise
    except (EngineError, msgspec.DecodeError, IndexError):  # xgrammar answers 500 to Lark, guidance 400 to the tag
        return False
