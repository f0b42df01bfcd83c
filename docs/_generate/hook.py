"""What MkDocs calls: the pages of dialects are made, their places in the navigation, and the tables inside pages."""

from __future__ import annotations

from typing import Any

import dialect_pages
import tables
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

SECTION = "Dialects"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The navigation names each dialect."""
    for entry in config.nav or []:
        if isinstance(entry, dict) and SECTION in entry:
            entry[SECTION] = [*entry[SECTION], *dialect_pages.pages()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The pages of the dialects."""
    for path, content in dialect_pages.pages().items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The tables."""
    return tables.filled(markdown)
