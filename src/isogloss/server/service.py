"""What every route of the server works with."""

from __future__ import annotations

from collections.abc import Sequence

from isogloss.chat import Chat
from isogloss.engines import ModelInfo
from isogloss.errors import RequestError
from isogloss.json_fields import as_string, listed, shown
from isogloss.server.admission import Admission
from isogloss.server.errors import NotFoundError
from isogloss.server.metrics import Metrics
from isogloss.server.options import ServerOptions
from isogloss.server.state import State

DEFAULT_MODEL = "default"
"""The name under which whatever model is served can be asked for."""


class Service:
    """A chat, how it is offered, and what is kept of it."""

    def __init__(self, chat: Chat, options: ServerOptions) -> None:
        self.chat = chat
        self.options = options
        self.state = State(options.store, options.keep_seconds)
        self.admission = Admission(options.max_running, options.max_waiting)
        self.metrics = Metrics(self.admission)

    @property
    def engine_options(self) -> frozenset[str]:
        """The engine's own options, which a request may have beside the fields of the API."""
        return self.chat.engine.options

    async def model(self) -> ModelInfo:
        return await self.chat.model()

    async def names(self) -> Sequence[str]:
        """What the model can be asked for as, its own id first."""
        return (await self.model()).id, *self.options.aliases, DEFAULT_MODEL

    async def served_model(self, asked: object) -> str:
        """The id of the model that answers to a request's ``model``. Raises `NotFoundError` when none does."""
        if asked is None:
            raise RequestError(
                "you must provide a model parameter", pointer="/model", code="missing_required_parameter"
            )
        name = as_string(asked, "/model")
        names = await self.names()
        if name not in names:
            raise NotFoundError(
                f"The model {shown(name)} does not exist or you do not have access to it. "
                f"Served here: {listed(names)}.",
                code="model_not_found",
            )
        return names[0]
