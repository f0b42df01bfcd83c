"""Tokenizers: text to ids and back, with control tokens always apart."""

from __future__ import annotations

from isogloss.tokenizers._byte_level import byte_level
from isogloss.tokenizers._gguf import from_gguf
from isogloss.tokenizers._o200k import o200k_harmony
from isogloss.tokenizers._protocol import Tokenizer
from isogloss.tokenizers._tokenizer_json import from_tokenizer_json

__all__ = ["Tokenizer", "byte_level", "from_gguf", "from_tokenizer_json", "o200k_harmony"]
