"""The fields that a request may have: what becomes of each, and a clear refusal for every other.

A field that only tunes how a hosted service works (billing, caching, identification) is accepted and has no effect. A
field that would change the answer and has no counterpart here is refused by name, and so is one that nobody knows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from isogloss.engines import Sampling
from isogloss.errors import RequestError
from isogloss.json_fields import Fields, as_number, as_string, invalid, items, shown

LONGEST_KEY = 64
LONGEST_VALUE = 512
MOST_CHOICES = 128
MOST_PAIRS = 16
MOST_STOPS = 4
MOST_TOP_LOGPROBS = 20

VERBOSITIES = ("low", "medium", "high")

TUNING = frozenset(
    {
        "metadata",
        "prediction",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "user",
        "verbosity",
    }
)
"""Accepted by both APIs, without effect on the answer."""

LOCAL_SAMPLING = frozenset({"min_p", "repeat_penalty", "repetition_penalty", "seed", "top_k"})
"""How local servers let their clients sample, beyond OpenAI's APIs. The two penalties are two names of one."""


def engine_options(fields: Fields, known: Collection[str], options: Collection[str]) -> dict[str, object]:
    """Those of the engine's own options that a request has. A name that the API has, too, is the API's."""
    return {
        name: value
        for name, value in fields.members.items()
        if name in options and name not in known and value is not None
    }


def check_fields(fields: Fields, known: Collection[str], refused: Mapping[str, str]) -> None:
    """Raises `RequestError` for a field that is refused, with the reason, and for one that is unknown."""
    for name, value in fields.members.items():
        if value is None or name in known:
            continue
        reason = refused.get(name)
        if reason is not None:
            raise RequestError(
                f"Unsupported parameter: '{name}'. {reason}", pointer=fields.at(name), code="unsupported_parameter"
            )
        raise RequestError(f"Unknown parameter: {shown(name)}.", pointer=fields.at(name), code="unknown_parameter")


def metadata(fields: Fields) -> dict[str, str]:
    """``metadata``: up to 16 pairs of strings, a key of at most 64 characters, a value of at most 512."""
    if not fields.has("metadata"):
        return {}
    given = fields.object("metadata")
    if len(given.members) > MOST_PAIRS:
        raise invalid(f"Expected `object` of length <= {MOST_PAIRS}, got {len(given.members)}", given.pointer)
    for key, value in given.members.items():
        text = as_string(value, given.at(key))
        if len(key) > LONGEST_KEY or len(text) > LONGEST_VALUE or "\0" in key + text:
            raise invalid(
                f"Expected a key of length <= {LONGEST_KEY} and a value of length <= {LONGEST_VALUE}, without NUL",
                given.at(key),
            )
    return {key: str(value) for key, value in given.members.items()}


def check_tuning(fields: Fields) -> None:
    """Those of the tuning fields that are sent back must be what the API says they are."""
    for name in ("prompt_cache_key", "safety_identifier", "service_tier", "user"):
        fields.optional_string(name)


def stop_strings(fields: Fields) -> tuple[str, ...]:
    """``stop``: a string, or up to four of them."""
    value = fields.get("stop")
    if value is None:
        return ()
    given = [(value, "/stop")] if isinstance(value, str) else items(value, "/stop")
    stops = tuple(as_string(stop, pointer) for stop, pointer in given)
    if len(stops) > MOST_STOPS:
        raise invalid(f"Expected `array` of length <= {MOST_STOPS}, got {len(stops)} stop strings", "/stop")
    if "" in stops:
        raise invalid("Expected `str` of length >= 1", "/stop")
    return stops


def logit_bias(fields: Fields) -> dict[int, float]:
    """``logit_bias``: token ids, as the keys of an object, to values from -100 to 100."""
    if not fields.has("logit_bias"):
        return {}
    bias = fields.object("logit_bias")
    for token in bias.members:
        if not (token.isascii() and token.isdecimal()):
            raise invalid(f"Expected a token id, got {shown(token)}", bias.at(token))
    return {int(token): as_number(value, -100, 100, bias.at(token)) for token, value in bias.members.items()}


def _repetition_penalty(fields: Fields) -> float | None:
    if fields.has("repeat_penalty") and fields.has("repetition_penalty"):
        raise invalid("'repeat_penalty' and 'repetition_penalty' are the same: give one of them.", "/repeat_penalty")
    name = "repeat_penalty" if fields.has("repeat_penalty") else "repetition_penalty"
    penalty = fields.number(name, 0, 10)
    if penalty == 0:
        raise invalid("Expected `float` > 0, got 0", fields.at(name))
    return penalty


def sampling(fields: Fields, max_tokens: int | None, logprobs: int | None) -> Sampling:
    """How to sample, from the fields that are the same in both APIs."""
    return Sampling(
        max_tokens=max_tokens,
        temperature=fields.number("temperature", 0, 2),
        top_p=fields.number("top_p", 0, 1),
        top_k=fields.integer("top_k", 0, 2**31 - 1),
        min_p=fields.number("min_p", 0, 1),
        seed=fields.integer("seed", -(2**63), 2**63 - 1),
        stop=stop_strings(fields),
        logprobs=logprobs,
        presence_penalty=fields.number("presence_penalty", -2, 2),
        frequency_penalty=fields.number("frequency_penalty", -2, 2),
        repetition_penalty=_repetition_penalty(fields),
        logit_bias=logit_bias(fields),
    )
