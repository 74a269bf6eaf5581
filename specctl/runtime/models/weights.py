"""Where a checkpoint's tensors lie, and reading them: one safetensors file or many with an index; for draft heads also
files that torch pickled, read without running any code in them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import copy
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from specctl.errors import DamagedError, MissingError

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
FP8_BLOCK = 128
_NUMBERS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
_LIKE_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")
PICKLES = ("pytorch_model.bin", "medusa_lm_head.pt")


class Weights:
    """Tensors of a folder by name, read on demand into ``dtype`` on ``device``.

    ``pickles``: files of torch's own format will do where there is no safetensors file. Raises MissingError for an
    absent file or tensor and DamagedError for a file or tensor that cannot be what it should be.
    """

    def __init__(self, folder: Path, dtype: torch.dtype, device: torch.device, pickles: bool = False) -> None:
        self.folder = folder
        self.dtype = dtype
        self.device = device
        self._unpickled: dict[str, Tensor] = {}
        self._read_once: set[str] = set()
        self._all_finite = pickles  # a head is small enough to look at every value
        pickled = [folder / name for name in PICKLES if (folder / name).is_file()]
        if pickles and pickled and not has_safetensors(folder):
            self._unpickled = _unpickle(pickled[0])
            self._files = dict.fromkeys(self._unpickled, pickled[0])
        else:
            self._files = {name: path for path in _files(folder) for name in _names(path)}

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def changed(self, tensors: Mapping[str, Tensor | None]) -> Weights:
        """The same weights but for ``tensors``; None: as if there were no tensor of that name."""
        other = copy(self)
        kept = {name: path for name, path in self._files.items() if name not in tensors}
        other._unpickled = {name: t for name, t in self._unpickled.items() if name not in tensors}
        other._unpickled |= {name: tensor for name, tensor in tensors.items() if tensor is not None}
        other._files = kept | dict.fromkeys(other._unpickled.keys() - kept.keys(), self.folder)
        return other

    def names(self) -> list[str]:
        """The names of all tensors, in order."""
        return sorted(self._files)

    def unread(self) -> list[str]:
        """The names of the tensors that nobody has asked for, in order."""
        return [name for name in self.names() if name not in self._read_once]

    def get(self, name: str, *shape: int | None) -> Tensor:
        """The tensor ``name``; raises MissingError with the folder and some names it has, DamagedError for another
        ``shape`` than wanted (None: any size; no shape at all: any shape).
        """
        tensor = self._read(name)
        found = tuple(tensor.shape)
        fits = len(found) == len(shape) and all(b in (None, a) for a, b in zip(found, shape, strict=True))
        if shape and not fits:
            wanted = ", ".join("any" if size is None else str(size) for size in shape)
            raise DamagedError(
                f"{self._files[name]}: tensor {name!r} is [{', '.join(map(str, found))}], wanted [{wanted}]",
                help="its config.json, or the target it is for, says other sizes; is it the head of another target?",
            )
        if tensor.dtype not in _NUMBERS:
            kinds = ", ".join(str(kind).removeprefix("torch.") for kind in _NUMBERS)
            raise DamagedError(
                f"{self._files[name]}: tensor {name!r} is {tensor.dtype}, wanted one of {kinds}",
                help="quantized checkpoints do not run here; take the one in full or half precision",
            )
        ready = tensor.to(device=self.device, dtype=self.dtype)
        return self._finite(name, ready) if self._all_finite else ready

    def finite(self, name: str, *shape: int | None) -> Tensor:
        """As `get`; raises DamagedError where a value is not a finite number."""
        return self._finite(name, self.get(name, *shape))

    def _finite(self, name: str, tensor: Tensor) -> Tensor:
        if not bool(tensor.isfinite().all()):
            bad = int((~tensor.isfinite()).sum())
            raise DamagedError(f"{self._files[name]}: {bad} values of tensor {name!r} are not finite numbers")
        return tensor

    def integers(self, name: str, size: int) -> Tensor:
        """The whole numbers [size] of ``name``, in int64 on the device; raises DamagedError for another dtype."""
        tensor = self._read(name)
        if tensor.dtype not in (torch.int64, torch.int32) or tuple(tensor.shape) != (size,):
            raise DamagedError(
                f"{self._files[name]}: tensor {name!r} is {tensor.dtype} {list(tensor.shape)}, wanted int64 [{size}]"
            )
        return tensor.to(device=self.device, dtype=torch.int64)

    def stored(self, name: str) -> Tensor:
        """The tensor ``name`` as it is stored: its own dtype, on the CPU."""
        return self._read(name)

    def _read(self, name: str) -> Tensor:
        if name not in self._files:
            raise MissingError(
                f"the checkpoint {self.folder} has no tensor {name!r}",
                help=f"it holds {len(self._files)} tensors, such as {', '.join(sorted(self._files)[:3])}; "
                "is this the model that its config.json describes?",
            )
        self._read_once.add(name)
        if name in self._unpickled:
            return self._unpickled[name]
        path = self._files[name]
        try:
            with safe_open(path, framework="pt") as file:
                tensor: Tensor = file.get_tensor(name)
        except (SafetensorError, OSError) as error:
            raise _damaged(path, error) from error
        return self._whole(name, tensor) if tensor.dtype == torch.float8_e4m3fn else tensor

    def _whole(self, name: str, tensor: Tensor) -> Tensor:
        """An 8-bit weight times its scales, one for each block of 128 x 128, as DeepSeek-V3 is published."""
        if f"{name}_scale_inv" not in self:
            raise DamagedError(f"{self._files[name]}: tensor {name!r} is {tensor.dtype} and has no '{name}_scale_inv'")
        rows, columns = tensor.shape
        scales = self.get(f"{name}_scale_inv", -(-rows // FP8_BLOCK), -(-columns // FP8_BLOCK)).float()
        spread = scales.repeat_interleave(FP8_BLOCK, 0)[:rows].repeat_interleave(FP8_BLOCK, 1)[:, :columns]
        return tensor.to(self.device, torch.float32) * spread

    def find(self, name: str, *shape: int | None) -> Tensor | None:
        """The tensor ``name``, or None where the checkpoint has none."""
        return self.get(name, *shape) if name in self else None

    def stacked(self, sizes: Mapping[str, int]) -> Tensor | None:
        """The vectors named in ``sizes`` with their lengths, one behind the other; None where the checkpoint has none
        of them.
        """
        if not any(name in self for name in sizes):
            return None
        return torch.cat([self.get(name, size) for name, size in sizes.items()])


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
        others = sorted(path.name for path in folder.iterdir() if path.suffix in _LIKE_WEIGHTS)[:4]
        raise MissingError(
            f"{folder} holds no weights: neither {SINGLE} nor {INDEX}"
            + (f", only {', '.join(others)}" if others else ""),
            help=f"weights are looked for under these names alone: rename the file to {SINGLE}, or convert it"
            if others
            else "point at the folder of a complete checkpoint in safetensors form",
        )
    return [single]


def has_safetensors(folder: Path) -> bool:
    """Whether the folder's weights are in safetensors form."""
    return (folder / SINGLE).is_file() or (folder / INDEX).is_file()


def check_finite(folder: Path) -> None:
    """Read the safetensors files of ``folder`` once for a value that is no number; raises DamagedError naming it."""
    for path in _files(folder) if has_safetensors(folder) else []:
        try:
            with safe_open(path, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118 – not a mapping
                    tensor = file.get_tensor(name)
                    if tensor.is_floating_point() and tensor.element_size() > 1 and not tensor.isfinite().all():
                        bad = int((~tensor.isfinite()).sum())
                        raise DamagedError(f"{path}: {bad} values of tensor {name!r} are not finite numbers")
        except (SafetensorError, OSError) as error:
            raise _damaged(path, error) from error


def _unpickle(path: Path) -> dict[str, Tensor]:
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises whatever the damage leads it to
        raise _damaged(path, error) from error
    if not isinstance(found, dict) or not all(isinstance(value, Tensor) for value in found.values()):
        raise DamagedError(f"{path} is not a mapping of names to tensors")
    return found


def _names(path: Path) -> list[str]:
    try:
        with safe_open(path, framework="pt") as file:
            return list(file.keys())
    except (SafetensorError, OSError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> DamagedError:
    return DamagedError(
        f"{path} cannot be read as weights ({path.stat().st_size:,} bytes): {error}",
        help="the file is truncated or of another kind; download it again and compare its size and checksum",
    )
