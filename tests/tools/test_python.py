"""Python that runs: output, errors, variables that stay, code without end, kernels that die."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

pytest.importorskip("jupyter_client")
pytest.importorskip("ipykernel")

from isogloss.messages import ToolCall
from isogloss.tools import python
from isogloss.tools.python import PythonTool

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def tool(anyio_backend: str) -> AsyncIterator[PythonTool]:
    tool = PythonTool(limit=20)
    yield tool
    await tool.close()


def call(code: object, key: str = "input") -> ToolCall:
    return ToolCall("call_1", "python", {key: code})


async def test_what_is_printed_and_the_last_value_come_back(tool: PythonTool) -> None:
    result = await tool.run(call("kept = 6\nprint('a')\nkept * 7"))
    assert (result.call_id, result.name, result.text, result.is_error) == ("call_1", "python", "a\n42", False)


async def test_variables_stay_from_call_to_call(tool: PythonTool) -> None:
    await tool.execute("stays = [1]")
    assert await tool.execute("stays.append(2); stays") == ("[1, 2]", True)


async def test_nothing_printed_is_said(tool: PythonTool) -> None:
    assert await tool.execute("None") == ("The code ran and printed nothing.", True)


async def test_what_is_written_to_either_stream_keeps_its_order(tool: PythonTool) -> None:
    code = "import sys\nprint('one', flush=True)\nprint('two', file=sys.stderr, flush=True)"
    assert await tool.execute(code) == ("one\ntwo", True)


async def test_an_error_comes_back_with_its_line_and_without_colours(tool: PythonTool) -> None:
    result = await tool.run(call("print('before')\n1 / 0"))
    assert result.is_error
    assert result.text.startswith("before\n")
    assert result.text.endswith("ZeroDivisionError: division by zero")
    assert "----> 2 1 / 0" in result.text
    assert "\x1b" not in result.text


async def test_code_may_come_under_either_name_and_only_as_text(tool: PythonTool) -> None:
    assert (await tool.run(call("1 + 1", "code"))).text == "2"
    refused = await tool.run(call(3))
    assert (refused.text, refused.is_error) == ("Error: Expected the code as text", True)


async def test_there_is_nobody_to_ask(tool: PythonTool) -> None:
    text, is_whole = await tool.execute("input()")
    assert not is_whole
    assert "does not support input requests" in text


async def test_long_output_keeps_its_beginning_and_its_end(tool: PythonTool) -> None:
    text, _ = await tool.execute("print('start' + 'x' * 3_000_000 + 'end')")
    assert text.startswith("startxxx")
    assert text.endswith("xxxend")
    assert "characters left out" in text
    assert len(text) < python.LONGEST_OUTPUT + 100


async def test_it_runs_in_a_folder_of_its_own_that_goes_in_the_end() -> None:
    tool = PythonTool()
    text, _ = await tool.execute("import os; open('here.txt', 'w').close(); os.getcwd()")
    folder = Path(text.strip("'"))
    assert (folder / "here.txt").exists()
    await tool.close()
    assert not folder.exists()


async def test_it_runs_where_it_is_told_to(tmp_path: Path) -> None:
    tool = PythonTool(directory=tmp_path)
    await tool.execute("open('here.txt', 'w').close()")
    await tool.close()
    assert (tmp_path / "here.txt").exists()


async def test_code_without_end_is_interrupted_and_variables_stay() -> None:
    tool = PythonTool(limit=20)
    await tool.execute("stays = 1")
    tool.limit = 0.5
    text, is_whole = await tool.execute("print('on and on', flush=True)\nwhile True: pass")
    assert not is_whole
    assert text.startswith("on and on\n")
    assert "KeyboardInterrupt" in text
    assert text.endswith("The code took longer than 0.5 seconds and was interrupted.")
    tool.limit = 20
    assert await tool.execute("stays") == ("1", True)
    await tool.close()


async def test_a_kernel_that_does_not_obey_is_started_anew() -> None:
    tool = PythonTool(limit=2, grace=0.5)
    text, is_whole = await tool.execute("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass")
    assert not is_whole
    assert text.endswith("The kernel did not obey and will be started anew; all variables are lost.")
    tool.limit = 20
    assert await tool.execute("'signal' in globals()") == ("False", True)
    await tool.close()


async def test_a_kernel_that_died_is_started_anew() -> None:
    tool = PythonTool(limit=20)
    text, is_whole = await tool.execute("import os; os._exit(1)")
    assert (text, is_whole) == ("The Python kernel died. It will be started anew; all variables are lost.", False)
    assert await tool.execute("1") == ("1", True)
    await tool.close()


async def test_a_kernel_that_cannot_start_is_told_of() -> None:
    tool = PythonTool(kernel="no-such-kernel")
    text, is_whole = await tool.execute("1")
    assert not is_whole
    assert text.startswith("The Python kernel did not start: NoSuchKernel")
    await tool.close()


async def test_somebody_else_s_kernel_is_used_and_left_alone() -> None:
    owner = PythonTool(limit=20)
    await owner.execute("owned = 1")
    assert owner._manager is not None
    guest = PythonTool(limit=20, connection_file=owner._manager.connection_file)
    assert await guest.execute("owned") == ("1", True)
    guest.limit = 0.5
    text, _ = await guest.execute("while True: pass")
    assert text.endswith("The code took longer than 0.5 seconds and was interrupted.")
    await guest.close()
    assert await owner.execute("owned") == ("1", True)
    await owner.close()
