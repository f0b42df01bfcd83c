"""Tokenizers: text to ids and back, with control tokens always apart."""

from __future__ import annotations

from isogloss.tokenizers._byte_level import byte_level
from isogloss.tokenizers._o200k import o200k_harmony
from isogloss.tokenizers._protocol import Tokenizer

__all__ = ["Tokenizer", "byte_level", "o200k_harmony"]
