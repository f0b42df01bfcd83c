from __future__ import annotations

import httpx
import openai
import pytest

from isogloss.engines import ModelInfo
from isogloss.server import ApiKey

from .conftest import Serve

SECRET = ApiKey("me", "secret")


def test_models_are_listed(serve: Serve) -> None:
    served = serve("Hi", engine={"model": ModelInfo("org/small", context_length=2048)})
    client = served.client()
    [model] = client.models.list().data
    assert (model.id, model.object, model.owned_by) == ("org/small", "model", "isogloss")
    assert model.created > 0
    assert model.model_dump()["max_model_len"] == 2048
    assert client.models.retrieve("org/small").id == "org/small"
    assert client.models.retrieve("default").id == "org/small"
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("other")
    assert caught.value.code == "model_not_found"


def test_aliases_are_served(serve: Serve) -> None:
    client = serve("Hi", aliases=("gpt-4o",)).client()
    completion = client.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "x"}])
    assert completion.model == "scripted"


def test_health_needs_no_key(serve: Serve) -> None:
    served = serve("Hi", keys=(SECRET,))
    assert httpx.get(f"{served.url}/health", trust_env=False).status_code == 200
    assert httpx.get(f"{served.url}/v1/models", trust_env=False).status_code == 401
