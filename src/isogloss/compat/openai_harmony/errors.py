"""What the stand-in raises."""

from __future__ import annotations

from typing import NoReturn


class HarmonyError(RuntimeError):
    """Tokens that are no harmony, or a conversation that cannot be rendered."""


def raise_disallowed_special_token(token: str) -> NoReturn:
    """Raise the error of `HarmonyEncoding.encode` for text that spells a special token."""
    raise HarmonyError(
        f"Encountered text corresponding to disallowed special token {token!r}.\n"
        "If you want this text to be encoded as a special token, "
        f"pass it to `allowed_special`, e.g. `allowed_special={{'{token}', ...}}`.\n"
        "If you want this text to be encoded as normal text, disable the check for this token "
        f"by passing `disallowed_special=(enc.special_tokens_set - {{'{token}'}})`.\n"
        "To disable this check for all special tokens, pass `disallowed_special=()`.\n"
    )
