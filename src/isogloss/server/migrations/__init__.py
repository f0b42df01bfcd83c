"""Alembic's revisions of the tables, run whenever a database is opened."""
