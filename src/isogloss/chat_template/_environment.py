"""Jinja as chat templates expect it: the sandbox, filters and functions that Hugging Face's transformers gives them.

Lists may be changed in place (transformers forbids it, some templates do it all the same): whatever a template is given
is made for one rendering.
"""

from __future__ import annotations

import json
from datetime import datetime
from functools import lru_cache
from types import BuiltinMethodType, MethodType
from typing import Any

from jinja2 import Template, nodes
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext, Macro, Undefined
from jinja2.sandbox import SandboxedEnvironment
from jinja2.utils import Namespace, pass_context
from jinja2.visitor import NodeTransformer

from isogloss.chat_template._marks import Marks

TRACE = "isogloss_trace"
"""The variable in which a rendering has its `Trace`, if it has one."""
_ENTER, _LEAVE = "isogloss_enter", "isogloss_leave"
_MET = "isogloss_met"
"""The filter that asks a trace: unlike a function it is called without the sandbox's checks."""


class Trace:
    """Notes which message a template's loops are at."""

    def __init__(self, marks: Marks, messages: list[dict[str, Any]]) -> None:
        self.marks = marks
        self.item = -1
        """The message that was met last."""
        self._positions = {id(message): position for position, message in enumerate(messages)}

    def variables(self) -> dict[str, Any]:
        """What a traced template needs: the marks to be written where a loop begins and ends, and itself."""
        return {TRACE: self, _ENTER: self.marks.enter, _LEAVE: self.marks.leave}

    def met(self, value: Any) -> str:
        """The mark to be written where a loop meets an item."""
        position = self._positions.get(id(value))
        if position is None:
            return ""
        self.item = position
        return self.marks.item + self.marks.number(position)


class GenerationTag(Extension):
    """``{% generation %}``: what the model says. It writes its body, and marks it where the rendering is traced."""

    tags = {"generation"}  # noqa: RUF012 - as jinja declares it

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_said"), [], [], body).set_lineno(line)

    @pass_context
    def _said(self, context: Context, caller: Macro) -> str:
        text = str(caller())
        trace = context.resolve(TRACE)
        if isinstance(trace, Undefined):
            return text
        return f"{trace.marks.generated}{text}{trace.marks.generated_end}"


class _LoopTracer(NodeTransformer):
    """Lets every loop tell the trace where it is."""

    def visit_For(self, node: nodes.For) -> list[nodes.Node]:  # noqa: N802 - jinja's way to name visitors
        self.generic_visit(node)
        if isinstance(node.target, nodes.Name):
            item = nodes.Name(node.target.name, "load")
            node.body.insert(0, _write(node, nodes.Filter(nodes.Name(TRACE, "load"), _MET, [item], [], None, None)))
        return [_write(node, nodes.Name(_ENTER, "load")), node, _write(node, nodes.Name(_LEAVE, "load"))]


def _write(node: nodes.For, expression: nodes.Expr) -> nodes.Node:
    return nodes.Output([expression]).set_lineno(node.lineno)


@lru_cache(maxsize=64)
def compiled(source: str, *, is_traced: bool) -> Template:
    """A template ready to render. ``is_traced``: it needs a `Trace`. Raises jinja's `TemplateSyntaxError`."""
    environment = _environment()
    tree = environment.parse(source)
    if is_traced:
        tree = _LoopTracer().visit(tree)
    code = environment.compile(tree)
    return Template.from_code(environment, code, environment.make_globals(None))


_OF_DICT = frozenset(dir(dict))
_METHODS: dict[type, frozenset[str]] = {
    kind: frozenset(name for name in dir(kind) if not name.startswith("_")) - {"format", "format_map"}
    for kind in (dict, str)
}
"""Methods that the sandbox lets templates have as they are."""


class _Environment(SandboxedEnvironment):
    """The sandbox, with short ways to what templates do most."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        kind = type(obj)
        if kind is dict and attribute not in _OF_DICT:
            return obj[attribute] if attribute in obj else self.undefined(obj=obj, name=attribute)
        if attribute in _METHODS.get(kind, ()):
            return getattr(obj, attribute)
        if kind in (LoopContext, Namespace) and not attribute.startswith("_"):
            value = getattr(obj, attribute, None)
            if value is not None and not isinstance(value, MethodType | BuiltinMethodType):
                return value
        return super().getattr(obj, attribute)

    def call(self, context: Context, obj: Any, *args: Any, **kwargs: Any) -> Any:
        if type(obj) is BuiltinMethodType and type(obj.__self__) in _METHODS:
            kwargs.pop("_loop_vars", None)
            kwargs.pop("_block_vars", None)
            return obj(*args, **kwargs)
        return super().call(context, obj, *args, **kwargs)


@lru_cache(maxsize=1)
def _environment() -> SandboxedEnvironment:
    environment = _Environment(trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, loopcontrols])
    environment.filters["tojson"] = _to_json
    environment.filters[_MET] = Trace.met
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = _now
    return environment


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Jinja's own filter escapes for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise(message: str) -> None:
    raise TemplateError(message)


def _now(form: str) -> str:
    return datetime.now().strftime(form)
