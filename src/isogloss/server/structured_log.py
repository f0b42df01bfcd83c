"""Log records as lines of JSON: time, level, logger, message, the request's id, and the record's own fields."""

from __future__ import annotations

import logging
from datetime import datetime, timezone

import msgspec

from isogloss.server.caller import REQUEST_ID


class JsonFormatter(logging.Formatter):
    """One line a record. A record's ``fields`` (given as ``extra``) are members of their own."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        request_id = REQUEST_ID.get()
        if request_id is not None:
            line["request_id"] = request_id
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


def configure(level: str, style: str) -> None:
    """Write the log of everything to standard error, as ``json`` or as ``text``."""
    handler = logging.StreamHandler()
    text = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JsonFormatter() if style == "json" else text)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("uvicorn.access").disabled = True  # the gate tells the same, with the request's id
