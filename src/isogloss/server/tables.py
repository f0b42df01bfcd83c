"""The tables of what is kept. JSON is kept as text: it is only ever read whole, and text holds every character."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, LargeBinary, MetaData, Table, Text

METADATA = MetaData()

_SEQUENCE = BigInteger().with_variant(Integer, "sqlite")  # the only type that counts up by itself in SQLite

SERVERS = Table(
    "servers",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("place", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("seen_at", Float, nullable=False),
)
"""The processes that share the database. ``place`` is where ``pid`` means something; see `isogloss.server.lease`."""

RESPONSES = Table(
    "responses",
    METADATA,
    Column("sequence", _SEQUENCE, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False, unique=True),
    Column("owner", Text, nullable=False),
    Column("previous_id", Text),
    Column("server_id", Text, index=True),
    Column("is_background", Boolean, nullable=False),
    Column("created_at", Float, nullable=False, index=True),
    Column("body", Text, nullable=False),
    Column("input_items", Text, nullable=False),
)
"""``server_id`` is the server that makes the response, null once it ended: only that server may change it."""

EVENTS = Table(
    "response_events",
    METADATA,
    Column("response_id", Text, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("data", Text, nullable=False),
)
"""The stream of a background response, so that a client can come back to it."""

CONVERSATIONS = Table(
    "conversations",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("used_at", Float, nullable=False, index=True),
    Column("metadata", Text, nullable=False),
)

ITEMS = Table(
    "items",
    METADATA,
    Column("sequence", _SEQUENCE, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False, index=True),
    Column("owner", Text, nullable=False),
    Column("response_id", Text, index=True),
    Column("conversation_id", Text),
    Column("data", Text, nullable=False),
    Index("ix_items_conversation_id_sequence", "conversation_id", "sequence"),
)
"""Items that can be referred to by id: the output of a response, or what a conversation holds."""

COMPLETIONS = Table(
    "chat_completions",
    METADATA,
    Column("sequence", _SEQUENCE, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False, unique=True),
    Column("owner", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("created_at", Float, nullable=False, index=True),
    Column("body", Text, nullable=False),
    Column("messages", Text, nullable=False),
)

COMPLETION_METADATA = Table(
    "chat_completion_metadata",
    METADATA,
    Column("completion_id", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
"""The metadata of completions once more, to filter by."""

SECRETS = Table(
    "secrets",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)
