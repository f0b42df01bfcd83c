"""The process in which the embedded llama.cpp server runs: ``python -m isogloss.engines._llama_child``.

It reads one line of JSON from standard input (see `main`), writes the server's URL as one line to standard output once
the model is loaded, and ends when standard input closes, which it also does when the parent dies. Everything else goes
to standard error.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

ERRORS_ONLY = 1
SPARE_HTTP_THREADS = 12
"""For what is asked beside the generations: health, and connections that are being closed."""


def main() -> None:
    """Serve until the parent is gone. The line of JSON has the fields of `LlamaServerOptions` and ``api_key``."""
    options = json.loads(sys.stdin.readline())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal interrupts the whole group; the parent decides
    report = os.dup(1)
    os.dup2(2, 1)
    import xllamacpp

    try:
        server = xllamacpp.Server(parameters(xllamacpp.CommonParams(), options))
    except RuntimeError:
        sys.exit(1)  # its log has said why
    os.write(report, f"{server.listening_address}\n".encode())
    sys.stdin.read()
    os._exit(0)  # the server's own threads need no farewell, and waiting for them can take as long as a prompt


def parameters(params: Any, options: dict[str, Any]) -> Any:
    """Fill in llama.cpp's parameters."""
    params.model.path = options["model"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [options["api_key"]]
    params.n_parallel = options["parallel"]
    params.n_ctx = options["context_length"] * options["parallel"]
    params.n_threads_http = options["parallel"] + SPARE_HTTP_THREADS
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options["threads"]
    params.cache_ram_mib = options["prompt_cache_mib"]
    params.special = True
    params.ui = False
    params.verbosity = ERRORS_ONLY
    if options["gpu_layers"] is not None:
        params.n_gpu_layers = options["gpu_layers"]
    return params


if __name__ == "__main__":
    main()
