"""The tools that a server runs, as they are: a Python kernel, and a browser of a web server on this machine."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from isogloss.engines import GenerationRequest
from isogloss.engines.scripted import Script, ScriptedEngine
from isogloss.server.hosted_tools import browser_kit, python_kit
from isogloss.tools import ToolKit

from .conftest import Serve, Served
from .test_hosted_tools import PYTHON, SEARCH
from .test_responses import create, events

pytest.importorskip("ipykernel")
pytest.importorskip("selectolax")


def call(name: str, **arguments: Any) -> Script:
    return Script(f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>", cut=7)


def results(request: GenerationRequest) -> list[str]:
    """What the tools have answered so far, as the model reads it."""
    return re.findall(r"<tool_response>\n(.*?)\n</tool_response>", request.prompt, re.DOTALL)


# --- Python -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_code_runs_in_one_kernel_that_ends_with_the_response(serve: Serve, stream: bool) -> None:
    scripts = [
        call("python", input="import os\nkept = 6\nprint(os.getpid())"),
        call("python", input="kept * 7"),
        call("python", input="kept / 0"),
        Script("It is 42.", cut=3),
    ]
    served = serve(*scripts, hosted_tools={"python": python_kit})
    if stream:
        output = events(served, tools=[PYTHON])[-1]["response"]["output"]
    else:
        output = [item.to_dict() for item in create(served, tools=[PYTHON]).output]
    *calls, message = output
    logs = [item["outputs"][0]["logs"] for item in calls]
    assert logs[1] == "42"
    assert logs[2].endswith("ZeroDivisionError: division by zero")
    assert results(served.engine.requests[-1]) == logs
    assert message["content"][0]["text"] == "It is 42."
    with pytest.raises(ProcessLookupError):
        os.kill(int(logs[0]), 0)


def test_no_response_sees_the_variables_of_another(serve: Serve) -> None:
    scripts = call("python", input="kept = 6"), "Kept.", call("python", input="kept"), "It is gone."
    served = serve(*scripts, hosted_tools={"python": python_kit})
    first = create(served, tools=[PYTHON])
    create(served, tools=[PYTHON], input="And now?", previous_response_id=first.id)
    nothing, gone = results(served.engine.requests[-1])
    assert nothing == "The code ran and printed nothing."
    assert "NameError" in gone


# --- the browser ------------------------------------------------------------------------------------------------------


class Site(BaseHTTPRequestHandler):
    """A search service that knows one page, and the page."""

    def do_GET(self) -> None:
        if self.path.startswith("/search?q=tea"):
            hit = {"url": f"http://{self.headers['host']}/tea", "title": "Tea", "content": "About tea."}
            self._answer("application/json", json.dumps({"results": [hit]}))
        else:
            self._answer("text/html", "<title>Tea</title><p>It is drunk hot.<p>Or cold.")

    def _answer(self, kind: str, body: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def browsing(serve: Serve, *scripts: Any, browser: Any) -> tuple[Served, ScriptedEngine]:
    served = serve(*scripts, hosted_tools={"browser": browser})
    return served, served.engine


@pytest.mark.parametrize("stream", [False, True])
def test_the_web_is_searched_opened_and_read(serve: Serve, site: str, stream: bool) -> None:
    from isogloss.tools.browser import Browser
    from isogloss.tools.http_backend import HttpBackend

    def browser() -> ToolKit:
        return Browser(HttpBackend(f"{site}/search", allows_private=True))

    scripts = [
        call("browser.search", query="tea"),
        call("browser.open", id=0),
        call("browser.find", pattern="cold"),
        Script("Cold.", cut=3),
    ]
    served, engine = browsing(serve, *scripts, browser=browser)
    if stream:
        output = events(served, tools=[SEARCH])[-1]["response"]["output"]
    else:
        output = [item.to_dict() for item in create(served, tools=[SEARCH]).output]
    *calls, message = output
    assert [item["action"]["type"] for item in calls] == ["search", "open_page", "find_in_page"]
    assert {item["status"] for item in calls} == {"completed"}
    found, opened, matched = results(engine.requests[-1])
    assert "About tea." in found
    assert "It is drunk hot." in opened
    assert "Or cold." in matched
    assert message["content"][0]["text"] == "Cold."


def test_a_model_cannot_look_into_this_machine(serve: Serve, site: str) -> None:
    """The search service is the operator's choice and may be here; what is opened is the model's."""
    scripts = call("browser.search", query="tea"), call("browser.open", id=0), "Refused."
    served, engine = browsing(serve, *scripts, browser=browser_kit(f"{site}/search"))
    create(served, tools=[SEARCH])
    found, opened = results(engine.requests[-1])
    assert "About tea." in found
    assert "is refused" in opened
