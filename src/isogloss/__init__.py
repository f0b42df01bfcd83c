"""One tongue outside, every model's dialect inside: render, scan and constrain what language models say."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from isogloss.dialects import Dialect, detect_dialect, dialect_names, get_dialect
from isogloss.errors import (
    ConversationError,
    EngineCapabilityError,
    EngineError,
    EngineTimeoutError,
    EngineUnavailableError,
    GrammarError,
    IsoglossError,
    OutputError,
    RequestError,
    SchemaError,
    SchemaTooComplexError,
    StrictSchemaError,
    TemplateError,
    TokenizerError,
    UnknownDialectError,
    UnrepresentableError,
    UnsatisfiableSchemaError,
)
from isogloss.events import (
    Event,
    Finish,
    Malformed,
    Piece,
    ReasoningDelta,
    RefusalDelta,
    Span,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    collect,
)
from isogloss.messages import (
    AssistantMessage,
    Conversation,
    DeveloperMessage,
    MalformedCall,
    Message,
    ResponseFormat,
    SystemMessage,
    TextGrammar,
    Tool,
    ToolCall,
    ToolChoice,
    ToolMessage,
    UserMessage,
)
from isogloss.prompt import Prompt, Segment

if TYPE_CHECKING:
    from isogloss import schema, tokenizers
    from isogloss.chat_template import ChatTemplate
    from isogloss.constraints import Constraint, Matcher

__version__ = "0.1.0"

__all__ = [
    "AssistantMessage",
    "ChatTemplate",
    "Constraint",
    "Conversation",
    "ConversationError",
    "DeveloperMessage",
    "Dialect",
    "EngineCapabilityError",
    "EngineError",
    "EngineTimeoutError",
    "EngineUnavailableError",
    "Event",
    "Finish",
    "GrammarError",
    "IsoglossError",
    "Malformed",
    "MalformedCall",
    "Matcher",
    "Message",
    "OutputError",
    "Piece",
    "Prompt",
    "ReasoningDelta",
    "RefusalDelta",
    "RequestError",
    "ResponseFormat",
    "SchemaError",
    "SchemaTooComplexError",
    "Segment",
    "Span",
    "StrictSchemaError",
    "SystemMessage",
    "TemplateError",
    "TextDelta",
    "TextGrammar",
    "TokenizerError",
    "Tool",
    "ToolCall",
    "ToolCallDelta",
    "ToolCallEnd",
    "ToolCallStart",
    "ToolChoice",
    "ToolMessage",
    "UnknownDialectError",
    "UnrepresentableError",
    "UnsatisfiableSchemaError",
    "UserMessage",
    "collect",
    "detect_dialect",
    "dialect_names",
    "get_dialect",
    "schema",
    "tokenizers",
]

# What pulls in a grammar engine or a validator is imported when it is first asked for.
_LAZY = {
    "ChatTemplate": ("isogloss.chat_template", "ChatTemplate"),
    "Constraint": ("isogloss.constraints", "Constraint"),
    "Matcher": ("isogloss.constraints", "Matcher"),
    "schema": ("isogloss.schema", None),
    "tokenizers": ("isogloss.tokenizers", None),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module_name, attribute = _LAZY[name]
    module = import_module(module_name)
    value = module if attribute is None else getattr(module, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
