"""The page in a real Chromium, against a real server on loopback over a scripted engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

from isogloss.chat import Chat
from isogloss.dialects import get_dialect
from isogloss.engines import GenerationRequest
from isogloss.engines.scripted import Script, ScriptedEngine
from server.conftest import Served, serving

from .chromium import ARGUMENTS, chromium

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"

REASONING, TEXT = "They want a forecast for Paris.", "I will look that up."
CALL = '<tool_call>\n{"name":"get_weather","arguments":{"city":"Paris","days":3}}\n</tool_call>'
OUTPUT = f"<think>\n{REASONING}\n</think>\n\n{TEXT}\n{CALL}"
RESULT = '{"sky":"sunny","temperature":21}'
ADVICE = '{"sky":"snowy","temperature":-6,"advice":"a warm coat"}'
"""To the page's own example of a schema."""
ANSWER = "It will be sunny, around 21 degrees."
SKY = "The sky as it is seen"
"""A schema's title, by which the model answers with JSON."""

SCREENS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light", "is_mobile": True, "has_touch": True},
}


def answer(request: GenerationRequest) -> Script:
    """A call, and once its result is there the answer; JSON where a schema is told."""
    if '"advice"' in request.prompt:
        return Script(ADVICE, cut=4)
    if SKY in request.prompt:
        return Script('{"sky":"sunny"}', cut=4)
    return Script(ANSWER if "sunny" in request.prompt else OUTPUT, cut=4)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    try:
        program = chromium()
    except RuntimeError as error:
        pytest.fail(str(error))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def served() -> Iterator[Served]:
    with serving(Chat(ScriptedEngine(answer, takes_grammar=False), get_dialect("hermes"))) as served:
        yield served


OpenPage = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser, served: Served) -> Iterator[OpenPage]:
    """``open_page(url, screen="light")``: the page in a browser that knows nothing of others, when ``ready`` is there.

    A test fails for whatever the browser complains of, but for ``expected``: errors in scripts, what the security
    policy forbids, requests to anywhere else.
    """
    complaints: list[str] = []
    contexts = []

    def open_page(
        url: str = served.url, screen: str = "light", ready: str = "body[data-view]", expected: str = "\0"
    ) -> Page:
        context = browser.new_context(**SCREENS[screen])
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.extend(_errors(message, expected)))
        page.on("request", lambda request: complaints.extend(_foreign(request, url)))
        page.goto(url)
        page.wait_for_selector(ready)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def _errors(message: ConsoleMessage, expected: str) -> list[str]:
    return [message.text] if message.type == "error" and expected not in message.text else []


def _foreign(request: Request, page_url: str) -> list[str]:
    return [request.url] if request.url.split("/")[:3] != page_url.split("/")[:3] else []
