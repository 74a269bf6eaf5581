"""Where a checkpoint's tensors lie, and reading them: one safetensors file or many with an index."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from specctl.errors import DamagedError, MissingError

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"


class Weights:
    """Tensors of a folder by name, read on demand into ``dtype`` on ``device``.

    Raises MissingError for an absent file or tensor and DamagedError for a file that cannot be read as safetensors.
    """

    def __init__(self, folder: Path, dtype: torch.dtype, device: torch.device) -> None:
        self.folder = folder
        self.dtype = dtype
        self.device = device
        self._files = {name: path for path in _files(folder) for name in _names(path)}

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def get(self, name: str) -> Tensor:
        """The tensor ``name``; raises MissingError with the folder and the nearest names."""
        if name not in self._files:
            raise MissingError(
                f"the checkpoint {self.folder} has no tensor {name!r}",
                help=f"it holds {len(self._files)} tensors, such as {', '.join(sorted(self._files)[:3])}; "
                "is this the model that its config.json describes?",
            )
        path = self._files[name]
        try:
            with safe_open(path, framework="pt") as file:
                tensor: Tensor = file.get_tensor(name)
        except (SafetensorError, OSError) as error:
            raise _damaged(path, error) from error
        return tensor.to(device=self.device, dtype=self.dtype)

    def find(self, name: str) -> Tensor | None:
        """The tensor ``name``, or None where the checkpoint has none."""
        return self.get(name) if name in self else None

    def joined(self, *names: str) -> Tensor:
        """The tensors ``names``, one under the other."""
        return torch.cat([self.get(name) for name in names])

    def joined_or_none(self, *names: str) -> Tensor | None:
        """As `joined`, or None where the first of them is absent."""
        return self.joined(*names) if names[0] in self else None


def _files(folder: Path) -> list[Path]:
    index = folder / INDEX
    if index.is_file():
        try:
            listed = sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise DamagedError(f"{index} is not an index of safetensors files: {error}") from error
        absent = [name for name in listed if not (folder / name).is_file()]
        if absent:
            raise MissingError(f"{index} names files that are not there: {', '.join(absent)}")
        return [folder / name for name in listed]
    single = folder / SINGLE
    if not single.is_file():
        raise MissingError(
            f"{folder} holds no weights: neither {SINGLE} nor {INDEX}",
            help="point at the folder of a complete checkpoint in safetensors form",
        )
    return [single]


def has_safetensors(folder: Path) -> bool:
    """Whether the folder's weights are in safetensors form."""
    return (folder / SINGLE).is_file() or (folder / INDEX).is_file()


def _names(path: Path) -> list[str]:
    try:
        with safe_open(path, framework="pt") as file:
            return list(file.keys())
    except (SafetensorError, OSError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> DamagedError:
    return DamagedError(
        f"{path} cannot be read as safetensors ({path.stat().st_size:,} bytes): {error}",
        help="the file is truncated or not a safetensors file; download it again and compare its size and checksum",
    )
