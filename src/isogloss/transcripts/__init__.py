"""Transcripts from one dialect to another.

A transcript is a JSON object in one of two forms:

- ``{"output": text, "tools": [...], "starts_in": "reasoning"}``: one turn of a model, raw. ``tools`` decide how values
  are typed, ``starts_in`` says where the prompt left off; both may be missing.
- ``{"messages": [...], "tools": [...]}``: a conversation in plain messages, calls and results written into the text,
  as `Dialect.inband` makes it. Messages with ``tool_calls`` and of role ``tool``, as the Chat Completions API has them,
  are taken too.

Other members are kept as they are. Nothing is lost silently: what the target cannot carry, and what the source wrote
that is no call, is a `Loss`.
"""

from isogloss.transcripts._converter import Converted, Converter, Loss, ReadTranscript, read_transcript
from isogloss.transcripts._results import read_results

__all__ = ["Converted", "Converter", "Loss", "ReadTranscript", "read_results", "read_transcript"]
