"""From a model's name to a network: where it lies, in which dtype and on which device it runs, native or adapted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from specctl.errors import MissingError, UsageError
from specctl.resources import resolve_model
from specctl.runtime.kv_cache import Span
from specctl.runtime.models.families import runs_flat
from specctl.runtime.models.flat import load_flat
from specctl.runtime.models.gguf import as_folder
from specctl.runtime.models.hf import load_adapted
from specctl.runtime.models.native import load_native, why_not_native
from specctl.runtime.models.pretrained import read_raw, whole_config
from specctl.runtime.models.weights import has_safetensors

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


class Model(Protocol):
    """A causal language model over a flat batch of spans; `Decoder`, `FlatModel` and `AdaptedModel` are the kinds.

    ``embedding`` and ``head``: [vocab, hidden], which draft heads borrow. ``takes_trees``: whether spans may have
    branches.
    """

    @property
    def vocab_size(self) -> int: ...
    @property
    def max_positions(self) -> int: ...
    @property
    def num_layers(self) -> int: ...
    @property
    def takes_trees(self) -> bool: ...
    @property
    def embedding(self) -> Tensor: ...
    @property
    def head(self) -> Tensor: ...
    @property
    def dtype(self) -> torch.dtype: ...
    @property
    def device(self) -> torch.device: ...

    def make_cache(self, num_slots: int, max_len: int) -> Any: ...
    def forward(self, token_ids: Sequence[int], spans: Sequence[Span], cache: Any, rows: Sequence[int]) -> Tensor: ...
    def forward_tapped(
        self, token_ids: Sequence[int], spans: Sequence[Span], cache: Any, rows: Sequence[int], layers: Sequence[int]
    ) -> tuple[Tensor, Tensor]: ...


def model_folder(name: str) -> Path:
    """The folder that ``name`` means, GGUF files converted; raises MissingError naming where it looked."""
    path = resolve_model(name)
    folder = as_folder(path) if path.is_file() else path
    if not (folder / "config.json").is_file():
        raise MissingError(
            f"{folder} has no config.json", help="point at the folder that holds config.json and the weights"
        )
    return folder


def choose_device(device: str) -> torch.device:
    """``auto`` is CUDA where torch has it, else the CPU; raises UsageError for what torch does not know or have."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise UsageError(
            f"device {device!r} is unknown to torch", help="use auto, cpu or cuda (cuda:0, ...)"
        ) from error
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise UsageError(
            f"device {device!r} was asked for, but this torch sees no CUDA device", help="use --device cpu"
        )
    return chosen


def choose_dtype(dtype: str, device: torch.device, config: Any) -> torch.dtype:
    """``auto`` is the checkpoint's own dtype on a GPU and float32 on a CPU, where few rows in half precision are
    slow.
    """
    if dtype == "auto":
        own = getattr(config, "dtype", None)
        return own if device.type == "cuda" and isinstance(own, torch.dtype) else torch.float32
    if dtype not in DTYPES:
        raise UsageError(f"dtype {dtype!r} is unknown", help=f"use auto or one of {', '.join(DTYPES)}")
    return DTYPES[dtype]


def read_config(folder: Path) -> Any:
    """The transformers config of the text model in ``folder``; raises DamagedError for a config.json that is no config
    and SpecctlError for a model that does not run here.
    """
    return whole_config(folder).get_text_config()


def load_model(folder: Path, config: Any, dtype: torch.dtype, device: torch.device) -> Model:
    """The network in ``folder``, native where its config allows it."""
    pickled = any(folder.glob("pytorch_model*.bin")) and not has_safetensors(folder)
    if why_not_native(config) is None and not pickled:
        return load_native(config, folder, dtype, device)
    if runs_flat(read_raw(folder)):
        return load_flat(folder, dtype, device)
    return load_adapted(folder, dtype, device)
