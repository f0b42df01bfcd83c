"""The command `isogloss`: one module a subcommand.

Exit codes: 0 done, 1 the answer is no, 2 bad input or usage, 3 the engine or the server failed.
"""

from __future__ import annotations

import os
import sys

from isogloss.errors import EngineError, IsoglossError

__all__ = ["main"]


def main() -> None:
    """Run the command line. A user's mistake is one line on standard error, never a traceback."""
    try:
        from isogloss.cli._app import app

        app()
    except IsoglossError as error:
        print(f"isogloss: {error}", file=sys.stderr)
        sys.exit(3 if isinstance(error, EngineError) or error.status >= 500 else 2)
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
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        sys.exit(130)
