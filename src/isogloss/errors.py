"""Everything that Isogloss raises, as one tree.

    IsoglossError
    ├── RequestError                 what the caller sent is not acceptable              400
    │   ├── ConversationError        a message, tool or option is wrong
    │   ├── SchemaError              a JSON Schema cannot be honoured
    │   │   ├── StrictSchemaError        outside the strict subset; has .violations
    │   │   ├── UnsatisfiableSchemaError no value satisfies it
    │   │   └── SchemaTooComplexError    over the stated bounds of time or memory
    │   ├── UnknownDialectError      no dialect of that name; has .candidates
    │   ├── UnrepresentableError     the dialect's format cannot carry this value
    │   ├── TemplateError            the model's own chat template cannot take the conversation
    │   └── TokenizerError           a vocabulary cannot be read, or an id is outside it
    ├── GrammarError                 a grammar does not compile                          400
    ├── OutputError                  the model's answer does not hold what was promised  502
    └── EngineError                  the engine failed                                   502
        ├── EngineUnavailableError   it cannot be reached, or died                       503
        ├── EngineTimeoutError       it did not answer in time                           504
        └── EngineCapabilityError    it cannot do what was asked                         400

Each error has a ``code`` (stable, for programs), a ``pointer`` (JSON pointer into what the caller sent) or a
``span`` (offsets into a text) where there is one, and ``status``, a hint for HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isogloss.schema.strict import Violation


class IsoglossError(Exception):
    """Base of the tree. ``str(error)`` is the message followed by where, as in ``Expected ... - at `/tools/0` ``; by
    nothing where that is the whole of what was sent (the pointer ``""``)."""

    code = "isogloss_error"
    status = 500

    def __init__(
        self,
        message: str,
        *,
        pointer: str | None = None,
        span: tuple[int, int] | None = None,
        code: str | None = None,
    ) -> None:
        self.message = message
        self.pointer = pointer
        self.span = span
        if code is not None:
            self.code = code
        super().__init__(message)

    def __str__(self) -> str:
        if self.pointer:
            return f"{self.message} - at `{self.pointer}`"
        if self.span is not None:
            return f"{self.message} - at {self.span[0]}..{self.span[1]}"
        return self.message


class RequestError(IsoglossError):
    """What the caller sent is not acceptable."""

    code = "invalid_request"
    status = 400


class ConversationError(RequestError):
    """A message, a tool or an option of the conversation is wrong."""

    code = "invalid_conversation"


class SchemaError(RequestError):
    """A JSON Schema cannot be honoured."""

    code = "invalid_json_schema"


class StrictSchemaError(SchemaError):
    """A schema is outside the strict subset; ``violations`` lists every reason."""

    def __init__(self, message: str, violations: Sequence[Violation], *, pointer: str | None = None) -> None:
        super().__init__(message, pointer=pointer)
        self.violations = tuple(violations)


class UnsatisfiableSchemaError(SchemaError):
    """No value satisfies the schema."""

    code = "unsatisfiable_schema"


class SchemaTooComplexError(SchemaError):
    """The schema needs more time or memory than the stated bounds."""

    code = "schema_too_complex"


class UnknownDialectError(RequestError):
    """No dialect has that name, or none claims that model; ``candidates`` lists the known ones."""

    code = "unknown_dialect"

    def __init__(self, message: str, candidates: Sequence[str]) -> None:
        super().__init__(message)
        self.candidates = tuple(candidates)


class UnrepresentableError(RequestError):
    """The dialect's format cannot carry this value, and altering it silently is not an option."""

    code = "unrepresentable"


class TemplateError(RequestError):
    """The model's own chat template cannot take the conversation."""

    code = "template_error"


class TokenizerError(RequestError):
    """A vocabulary cannot be read, or an id is outside it."""

    code = "tokenizer_error"


class GrammarError(IsoglossError):
    """A grammar does not compile; the message is the grammar engine's."""

    code = "invalid_grammar"
    status = 400


class OutputError(IsoglossError):
    """The model's answer does not hold what was promised to the caller."""

    code = "invalid_output"
    status = 502


class EngineError(IsoglossError):
    """The engine failed."""

    code = "engine_error"
    status = 502


class EngineUnavailableError(EngineError):
    """The engine cannot be reached, or died."""

    code = "engine_unavailable"
    status = 503


class EngineTimeoutError(EngineError):
    """The engine did not answer in time."""

    code = "engine_timeout"
    status = 504


class EngineCapabilityError(EngineError):
    """The engine cannot do what was asked of it."""

    code = "engine_capability"
    status = 400
