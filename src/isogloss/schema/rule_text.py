"""Pieces of the engine's Lark that several modules write."""

from __future__ import annotations


def repeated(item: str, least: int, most: int | None) -> str:
    """The item a number of times, none for no bound."""
    if most is None:
        return f"({item})*" if least == 0 else f"({item}){{{least},}}"
    if most == 0:
        return ""
    return f"({item}){{{least},{most}}}"


def when(conditions: list[str]) -> str:
    """The condition of an alternative of a parametric rule."""
    if not conditions:
        return ""
    folded = conditions[-1]
    for condition in reversed(conditions[:-1]):
        folded = f"and({condition}, {folded})"
    return f"%if {folded}"
