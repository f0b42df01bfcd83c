"""The command `isogloss`: one module a subcommand.

Exit codes: 0 done, 1 the answer is no, 2 bad input or usage, 3 the engine, the server or the output failed.
"""

from __future__ import annotations

import os
import sys

from isogloss.errors import IsoglossError

__all__ = ["main"]


def main() -> None:
    """Run the command line. A user's mistake is one line on standard error, never a traceback."""
    try:
        _prepare_streams()
        from isogloss.cli._app import app

        app()
        sys.stdout.flush()
    except IsoglossError as error:
        print(f"isogloss: {error}", file=sys.stderr)
        sys.exit(3 if error.status >= 500 else 2)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "isogloss":
            raise
        print(
            f"isogloss: this command needs `{error.name}`, which is not installed: "
            "pip install 'isogloss[cli,llamacpp,server]'",
            file=sys.stderr,
        )
        sys.exit(2)
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        _silence_output()
    except SystemExit as error:
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        _silence_output()  # typer and rich make exit code 1 of it, which here is an answer
    except OSError as error:
        _silence_output()
        print(f"isogloss: Cannot write the output: {error.strerror or error}", file=sys.stderr)
        sys.exit(3)
    except KeyboardInterrupt:
        sys.exit(130)


def _prepare_streams() -> None:
    """Models write anything: output is UTF-8 whatever the locale, and half a surrogate pair is written as an escape.
    A stream that the shell closed reads as empty and swallows what is written."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - lives as long as the process
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - as above
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _silence_output() -> None:
    """What is still buffered cannot be written, and must not be tried again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
