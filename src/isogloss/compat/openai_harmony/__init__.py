"""A stand-in for the package ``openai_harmony`` 0.0.8: the same names, signatures, values and errors.

    import sys, isogloss.compat.openai_harmony
    sys.modules["openai_harmony"] = isogloss.compat.openai_harmony

What differs, on purpose:

- The vocabulary comes with Isogloss: nothing is downloaded, no environment variable is read, and it is loaded once.
- A lone surrogate in a message is rendered as U+FFFD, as `HarmonyEncoding.encode` has it, instead of raising.
- ``strict=False`` never loses text and never raises for what a model wrote. `StreamableParser.repairs` says what was
  put right.
- `StreamableParser` takes many tokens at once (`process_many`), can be copied, and records the token that ended each
  message (`StreamableParser.stops`).
- Text, state and tokens may be read after every token without the work growing with their square.
"""

from __future__ import annotations

from isogloss.compat.openai_harmony.encoding import (
    HarmonyEncoding,
    HarmonyEncodingName,
    RenderConversationConfig,
    RenderOptions,
    load_harmony_encoding,
)
from isogloss.compat.openai_harmony.errors import HarmonyError, raise_disallowed_special_token
from isogloss.compat.openai_harmony.messages import (
    Author,
    ChannelConfig,
    Content,
    Conversation,
    DeveloperContent,
    Message,
    ReasoningEffort,
    Role,
    SystemContent,
    TextContent,
    ToolDescription,
    ToolNamespaceConfig,
)
from isogloss.compat.openai_harmony.parser import StreamableParser, StreamState

__all__ = [
    "Author",
    "ChannelConfig",
    "Content",
    "Conversation",
    "DeveloperContent",
    "HarmonyEncoding",
    "HarmonyEncodingName",
    "HarmonyError",
    "Message",
    "ReasoningEffort",
    "RenderConversationConfig",
    "RenderOptions",
    "Role",
    "StreamState",
    "StreamableParser",
    "SystemContent",
    "TextContent",
    "ToolDescription",
    "ToolNamespaceConfig",
    "load_harmony_encoding",
    "raise_disallowed_special_token",
]
