"""How Alembic reaches the database: by the connection that it is given, inside that connection's transaction."""

from __future__ import annotations

from alembic import context

from isogloss.server.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
context.run_migrations()
