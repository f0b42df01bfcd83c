"""Servers, responses and their events, conversations, items, chat completions, secrets."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_TABLES = (
    *("servers", "responses", "response_events", "conversations", "items"),
    *("chat_completions", "chat_completion_metadata", "secrets"),
)


def upgrade() -> None:
    def sequence() -> sa.Column[int]:
        kind = sa.BigInteger().with_variant(sa.Integer, "sqlite")
        return sa.Column("sequence", kind, primary_key=True, autoincrement=True)

    def required(name: str, kind: sa.types.TypeEngine[Any]) -> sa.Column[Any]:
        return sa.Column(name, kind, nullable=False)

    text, number, real = sa.Text(), sa.Integer(), sa.Float()
    op.create_table(
        "servers",
        sa.Column("id", text, primary_key=True),
        required("place", text),
        required("pid", number),
        required("seen_at", real),
    )
    op.create_table(
        "responses",
        sequence(),
        sa.Column("id", text, nullable=False, unique=True),
        required("owner", text),
        sa.Column("previous_id", text),
        sa.Column("server_id", text, index=True),
        required("is_background", sa.Boolean()),
        sa.Column("created_at", real, nullable=False, index=True),
        required("body", text),
        required("input_items", text),
    )
    op.create_table(
        "response_events",
        sa.Column("response_id", text, primary_key=True),
        sa.Column("number", number, primary_key=True),
        required("data", text),
    )
    op.create_table(
        "conversations",
        sa.Column("id", text, primary_key=True),
        required("owner", text),
        required("created_at", real),
        sa.Column("used_at", real, nullable=False, index=True),
        required("metadata", text),
    )
    op.create_table(
        "items",
        sequence(),
        sa.Column("id", text, nullable=False, index=True),
        required("owner", text),
        sa.Column("response_id", text, index=True),
        sa.Column("conversation_id", text),
        required("data", text),
    )
    op.create_index("ix_items_conversation_id_sequence", "items", ["conversation_id", "sequence"])
    op.create_table(
        "chat_completions",
        sequence(),
        sa.Column("id", text, nullable=False, unique=True),
        required("owner", text),
        required("model", text),
        sa.Column("created_at", real, nullable=False, index=True),
        required("body", text),
        required("messages", text),
    )
    op.create_table(
        "chat_completion_metadata",
        sa.Column("completion_id", text, primary_key=True),
        sa.Column("name", text, primary_key=True),
        required("value", text),
    )
    op.create_table("secrets", sa.Column("name", text, primary_key=True), required("value", sa.LargeBinary()))


def downgrade() -> None:
    for name in reversed(_TABLES):
        op.drop_table(name)
