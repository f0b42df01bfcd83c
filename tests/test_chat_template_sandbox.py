"""Short ways through the sandbox of chat templates lead where the long ones do."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from jinja2.runtime import LoopContext, Undefined
from jinja2.sandbox import SandboxedEnvironment
from jinja2.utils import Namespace

from isogloss.chat_template import ChatTemplate
from isogloss.chat_template._environment import _environment
from isogloss.errors import TemplateError
from isogloss.messages import Conversation, UserMessage

ENVIRONMENT = _environment()
LOOP = LoopContext([1, 2], Undefined)
OBJECTS: list[Any] = [
    {},
    {"items": 1, "x": 2, "__class__": 3, "format": 4},
    "text {}",
    ["x"],
    5,
    None,
    Namespace(x=1, text="y", form="{}".format, own=[].append, nothing=None),
    LOOP,
    (number for number in ()),
    lambda: None,
    type("Text", (str,), {"x": 1})("z"),
    type("Map", (dict,), {"x": 1})(y=2),
]
ATTRIBUTES = [
    *("x", "y", "items", "keys", "format", "format_map", "split", "text", "form", "own", "nothing", "append", "first"),
    *("index0", "cycle", "nosuch", "_x", "__class__", "__init__", "__globals__", "__dict__", "mro", "gi_frame", ""),
]


def shown(value: object) -> object:
    """What of a value may be compared."""
    if isinstance(value, Undefined):
        return type(value), value._undefined_message, value._undefined_exception
    if getattr(value, "__wrapped__", None) is not None:
        return "a wrapper", value.__wrapped__
    return type(value), value if not hasattr(value, "__func__") else value.__func__


@pytest.mark.parametrize(("value", "attribute"), [*itertools.product(OBJECTS, ATTRIBUTES)])
def test_an_attribute_is_what_the_sandbox_says(value: Any, attribute: str) -> None:
    expected = SandboxedEnvironment.getattr(ENVIRONMENT, value, attribute)
    assert shown(ENVIRONMENT.getattr(value, attribute)) == shown(expected)


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages.__class__.mro() }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ messages[0].__init__.__globals__ }}",
        "{{ '{0.__class__}'.format(messages) }}",
        "{% set ns = namespace(f='{0.__class__}'.format) %}{{ ns.f(messages) }}",
        "{% set ns = namespace() %}{{ ns.__class__.__init__ }}",
    ],
)
def test_a_template_stays_in_the_sandbox(source: str) -> None:
    with pytest.raises(TemplateError):
        ChatTemplate(source).render(Conversation([UserMessage("Hi")]))


def test_methods_are_called_as_the_sandbox_calls_them() -> None:
    source = "{% for m in messages %}{% for part in m.content.split('-') %}{{ part.strip() }},{% endfor %}{% endfor %}"
    assert ChatTemplate(source).render(Conversation([UserMessage("a - b")])).text == "a,b,"
