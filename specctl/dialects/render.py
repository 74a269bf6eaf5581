"""Native forms as text: JSON for vLLM, flags for SGLang, YAML for TensorRT-LLM and specctl."""

from __future__ import annotations

import json
import shlex
from typing import Any


def render(output: Any, dialect: str) -> str:
    """The text that `specctl convert` prints, ending in a newline."""
    if dialect == "vllm":
        return json.dumps(output, ensure_ascii=False) + "\n"
    if dialect == "sglang":
        return " ".join(shlex.quote(token) for token in output) + "\n"
    import yaml

    return str(yaml.safe_dump(output, sort_keys=False, default_flow_style=False, allow_unicode=True, width=10_000))
