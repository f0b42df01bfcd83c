"""What others rely on."""

from __future__ import annotations

import subprocess
import sys

import pytest

import isogloss
import isogloss.constraints
import isogloss.dialects
import isogloss.engines
import isogloss.schema
import isogloss.tokenizers

PACKAGES = [
    isogloss,
    isogloss.constraints,
    isogloss.dialects,
    isogloss.engines,
    isogloss.schema,
    isogloss.tokenizers,
]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_all_is_sorted_and_every_name_is_there(package: object) -> None:
    names = package.__all__  # type: ignore[attr-defined]
    assert list(names) == sorted(names)
    assert [name for name in names if not hasattr(package, name)] == []


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        isogloss.nothing  # noqa: B018


def test_importing_the_package_loads_no_heavy_dependency() -> None:
    heavy = ["llguidance", "tiktoken", "pydantic", "jsonschema_rs", "jinja2", "numpy", "httpx", "fastapi", "openai"]
    code = f"import sys, isogloss; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_names_that_others_rely_on() -> None:
    dialect = isogloss.get_dialect("hermes")
    message = dialect.parse('Hi.\n<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>')
    assert (message.text, message.reasoning, message.refusal, message.finish) == ("Hi.", "", "", "tool_calls")
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("f", {"a": 1})]
    assert message.tool_calls[0].id.startswith("call_")
    assert dialect.parse("<tool_call>no").malformed[0].raw == "<tool_call>no"
    assert message == isogloss.collect([]) or isinstance(message, isogloss.AssistantMessage)
