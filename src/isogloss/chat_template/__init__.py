"""A model's own chat template: Jinja, rendered byte for byte as in training, with content kept apart from markup.

template = ChatTemplate.from_gguf("model.gguf")
prompt = template.render(conversation)
"""

from __future__ import annotations

from isogloss.chat_template._template import ChatTemplate

__all__ = ["ChatTemplate"]
