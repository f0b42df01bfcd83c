"""SGLang's detectors. The package's own ``__init__`` wants a GPU's libraries; the detectors do not."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from worker import as_json, serve, streamed

specification = find_spec("sglang")
assert specification is not None
assert specification.origin is not None
package = ModuleType("sglang")
package.__path__ = [str(Path(specification.origin).parent)]
sys.modules["sglang"] = package

from sglang.srt.entrypoints.openai.protocol import Tool  # noqa: E402

DETECTORS = {
    "deepseek": "deepseekv31_detector.DeepSeekV31Detector",
    "dsml": "deepseekv4_detector.DeepSeekV4Detector",
    "gemma": "gemma4_detector.Gemma4Detector",
    "glm": "glm47_moe_detector.Glm47MoeDetector",
    "harmony": "gpt_oss_detector.GptOssDetector",
    "hermes": "hermes_detector.HermesDetector",
    "kimi": "kimik2_detector.KimiK2Detector",
    "lfm": "lfm2_detector.Lfm2Detector",
    "llama3": "llama32_detector.Llama32Detector",
    "minicpm5": "minicpm5_detector.MiniCPM5Detector",
    "minimax": "minimax_m2.MinimaxM2Detector",
    "minimax_m3": "minimax_m3.MinimaxM3Detector",
    "mistral": "mistral_detector.MistralDetector",
    "pythonic": "pythonic_detector.PythonicDetector",
    "qwen3": "qwen25_detector.Qwen25Detector",
    "qwen3_coder": "qwen3_coder_detector.Qwen3CoderDetector",
}
"""Not kimi_k3, which imports xgrammar and with it all of torch."""


def detector(dialect: str) -> Any:
    module, name = DETECTORS[dialect].split(".")
    return getattr(import_module(f"sglang.srt.function_call.{module}"), name)()


def scan(dialect: str, tools: list[Any], pieces: list[str], limit: float, **_: Any) -> dict[str, Any]:
    made, offered = detector(dialect), [Tool.model_validate(tool) for tool in tools]
    feed = made.parse_streaming_increment
    return streamed(lambda piece: feed(piece, offered), pieces, limit)


def arguments(dialect: str, tools: list[Any], pieces: list[str], **_: Any) -> dict[str, Any]:
    made, offered = detector(dialect), [Tool.model_validate(tool) for tool in tools]
    results = [made.parse_streaming_increment(piece, offered) for piece in pieces]
    results.append(made.finish(offered))
    said = [call.parameters for result in results for call in result.calls if call.parameters]
    return {"arguments": as_json(said), "deltas": len(said)}


def dialects() -> dict[str, Any]:
    return {"dialects": list(DETECTORS)}


serve({"arguments": arguments, "dialects": dialects, "scan": scan})
