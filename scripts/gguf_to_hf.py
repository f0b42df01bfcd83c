"""Convert a GGUF model to a folder of Hugging Face's kind: ``python gguf_to_hf.py MODEL.gguf FOLDER``.

It needs `transformers`, `torch`, `gguf` and `accelerate`. The weights are written in 16 bits; vocabulary and chat
template come out of the same file. The folder is whole only when its ``config.json`` is there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer


def convert(source: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name).save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name)
    tied = torch.equal(model.get_input_embeddings().weight, model.get_output_embeddings().weight)
    # `save_pretrained` refuses a model that was quantised; its tensors are ordinary ones by now.
    weights = {
        name: tensor.to(torch.bfloat16).contiguous()
        for name, tensor in model.state_dict().items()
        if not (tied and name == "lm_head.weight")
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = model.config.to_dict()
    config.pop("quantization_config", None)
    config |= {"architectures": [type(model).__name__], "dtype": "bfloat16", "tie_word_embeddings": tied}
    (folder / "config.json").write_text(json.dumps(config, indent=2))


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
