"""Try an installed Isogloss that has its core dependencies and nothing else: import, scan, render, tokens, mask.

``scripts/check_dist.py`` runs this in fresh environments: ``python -I scripts/try_install.py``.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util

import isogloss

EXTRAS = ("fastapi", "httpx", "openai", "rich", "sqlalchemy", "typer", "xllamacpp")
"""What the extras bring. Were one here, the core might lean on it without our noticing."""
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'


def main() -> None:
    present = [name for name in EXTRAS if importlib.util.find_spec(name)]
    check(present, [])
    check(isogloss.__version__, importlib.metadata.version("isogloss"))

    parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
    weather = isogloss.Tool("get_weather", "The weather of a city", parameters)
    conversation = isogloss.Conversation((isogloss.UserMessage("Weather in Paris?"),), tools=(weather,))
    for name in isogloss.dialect_names():
        prompt = isogloss.get_dialect(name).render(conversation)
        check("Weather in Paris?" in prompt.text, True)

    hermes = isogloss.get_dialect("hermes")
    (call,) = hermes.parse(CALL).tool_calls
    check((call.name, call.arguments), ("get_weather", {"city": "Paris"}))

    vocabulary = isogloss.tokenizers.o200k_harmony()
    ids = isogloss.get_dialect("harmony").render(conversation).tokens(vocabulary)
    check(ids[0], 200006)  # <|start|>
    matcher = hermes.constraint(conversation.tools, "required").matcher(vocabulary)
    check(bool(matcher.mask().any()), True)


def check(found: object, expected: object) -> None:
    if found != expected:
        raise SystemExit(f"Expected {expected!r}, got {found!r}")


if __name__ == "__main__":
    main()
