"""GPUs and their dense figures: memory, bandwidth, arithmetic.

Sources: the data sheets of the vendors as quoted by aiconfigurator's system files (ai-dynamo/aiconfigurator) and the
readings of nvidia-smi in public logs. `reported_gib` is what a driver reports; where no reading was found it is taken
as 98 % of the advertised figure in GiB, and said to be assumed."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from specctl.errors import UsageError

GIB = 1 << 30


@dataclass(frozen=True)
class Gpu:
    """One GPU. `bandwidth` in bytes/s; `half` and `eight`: dense FLOP/s in 16 and 8 bits (None: not known, or no such
    units); `assumed`: which figures were not found and are neighbours' or estimates.
    """

    name: str
    title: str
    advertised_gb: int
    reported_gib: float
    bandwidth: float
    half: float | None
    eight: float | None
    aliases: tuple[str, ...] = ()
    assumed: str = ""

    @property
    def memory(self) -> float:
        """Bytes that the driver reports."""
        return self.reported_gib * GIB

    def flops(self, eight_bit: bool) -> float | None:
        """Dense FLOP/s for weights in 8 bits, where the GPU has such units, else in 16."""
        return self.eight if eight_bit and self.eight else self.half


def _gpu(
    name: str,
    title: str,
    gb: int,
    gib: float | None,
    terabytes: float,
    half: float | None,
    eight: float | None,
    *aliases: str,
    assumed: str = "",
) -> Gpu:
    if gib is None:
        gib = gb * 0.98
        assumed = "; ".join(filter(None, (f"memory taken as {gib:.1f} GiB (98 % of {gb} GiB)", assumed)))
    tera = 1e12
    return Gpu(name, title, gb, gib, terabytes * tera, half and half * tera, eight and eight * tera, aliases, assumed)


_ROWS = (
    _gpu("l4", "NVIDIA L4", 24, 22.49, 0.300, 121, 242),
    _gpu("l40s", "NVIDIA L40S", 48, 44.99, 0.864, 362.05, 733),
    _gpu("a100-40gb", "NVIDIA A100 40 GB", 40, None, 1.555, 312, None, "a100-sxm4-40gb", "a100-pcie-40gb"),
    _gpu("a100", "NVIDIA A100 80 GB SXM", 80, None, 2.039, 312, None, "a100-80gb", "a100-sxm", "a100-sxm4-80gb"),
    _gpu("a100-pcie", "NVIDIA A100 80 GB PCIe", 80, None, 1.935, 312, None, "a100-80gb-pcie", "a100-pcie-80gb"),
    _gpu("h100", "NVIDIA H100 SXM 80 GB", 80, 79.65, 3.35, 989, 1978, "h100-sxm", "h100-80gb", "h100-80gb-hbm3"),
    _gpu("h100-pcie", "NVIDIA H100 PCIe 80 GB", 80, None, 2.0, 756.5, 1513),
    _gpu("h100-nvl", "NVIDIA H100 NVL 94 GB", 94, None, 3.9, 835.5, 1670.5),
    _gpu("h200", "NVIDIA H200 SXM 141 GB", 141, None, 4.8, 989, 1978, "h200-sxm"),
    _gpu(
        "h200-nvl", "NVIDIA H200 NVL 141 GB", 141, 140.40, 4.8, 835.5, 1670.5,
        assumed="arithmetic taken from the H100 NVL",
    ),
    _gpu("b200", "NVIDIA B200", 180, 178.36, 7.7, 2250, 4500, "b200-sxm"),
    _gpu("gb200", "NVIDIA GB200 (one GPU)", 186, 185.03, 8.0, 2500, 5000),
    _gpu("rtx-3090", "NVIDIA RTX 3090", 24, None, 0.936, None, None, "3090"),
    _gpu("rtx-4090", "NVIDIA RTX 4090", 24, 23.99, 1.008, 165.2, 330.3, "4090"),
    _gpu("rtx-5090", "NVIDIA RTX 5090", 32, 31.4, 1.792, 209.5, 419, "5090"),
    _gpu("rtx-6000-ada", "NVIDIA RTX 6000 Ada", 48, None, 0.960, 364, None, assumed="arithmetic about 364 TFLOPS"),
    _gpu(
        "rtx-pro-6000", "NVIDIA RTX PRO 6000 Blackwell Server Edition", 96, 95.59, 1.597, 467.8, 935.6,
        "rtx-pro-6000-server", "rtx-pro-6000-blackwell-server-edition", "rtx-pro-6000-server-edition",
    ),
    _gpu(
        "rtx-pro-6000-workstation", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 96, 95.59, 1.792, 503.8, None,
        "rtx-pro-6000-blackwell-workstation-edition", "rtx-pro-6000-workstation-edition",
    ),
    _gpu(
        "rtx-pro-6000-max-q", "NVIDIA RTX PRO 6000 Blackwell Max-Q", 96, None, 1.792, None, None,
        "rtx-pro-6000-blackwell-max-q-workstation-edition",
    ),
    _gpu("mi300x", "AMD Instinct MI300X", 192, None, 5.3, 1307.4, 2614.9, "mi300"),
    _gpu(
        "m4-max", "Apple M4 Max 48 GB", 48, 36.0, 0.546, None, None, "apple-m4-max",
        assumed="three quarters of the shared memory are the GPU's",
    ),
    _gpu(
        "dgx-spark", "NVIDIA DGX Spark (GB10)", 128, 119.2, 0.273, None, None, "gb10",
        assumed="119.2 GiB of shared memory (128 GB)",
    ),
)  # fmt: skip
GPUS: dict[str, Gpu] = {gpu.name: gpu for gpu in _ROWS}
_BY_NAME = {alias.replace("-", ""): gpu for gpu in _ROWS for alias in (gpu.name, *gpu.aliases)}


def find_gpu(name: str) -> Gpu | None:
    """The GPU that a name means, as people and drivers write it (`h100`, `NVIDIA H100 80GB HBM3`), or None."""
    return _BY_NAME.get(_plain(name))


def _plain(name: str) -> str:
    letters = re.sub(r"[^a-z0-9]+", "", name.lower())
    return re.sub(r"^(nvidia|geforce|amd|instinct|tesla)+", "", letters)


def gpu_named(name: str) -> Gpu:
    """As `find_gpu`; raises `UsageError` with the nearest name."""
    found = find_gpu(name)
    if found is not None:
        return found
    near = difflib.get_close_matches(_plain(name), _BY_NAME, n=1, cutoff=0.6)
    hint = f"did you mean {_BY_NAME[near[0]].name}? " if near else ""
    raise UsageError(f"unknown GPU {name!r}", help=f"{hint}known: {', '.join(GPUS)}")
