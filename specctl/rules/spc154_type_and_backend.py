"""The decoding type does not run on the chosen backend, or the backend is gone.

Medusa and Lookahead run on the TensorRT-engine backend of 1.2.1 only; 1.4 has no such backend.

Bad:

    trtllm: speculative_config: {decoding_type: Medusa, max_draft_len: 4}

Good:

    trtllm: {backend: tensorrt, speculative_config: {decoding_type: Medusa, max_draft_len: 4}}
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading
from specctl.dialects.trtllm_keys import BACKENDS, ENGINE_BACKEND, ENGINE_ONLY
from specctl.dialects.trtllm_line import is_new

ENGINES = ("trtllm",)
NOT_AUTODEPLOY = {
    False: frozenset({"MTP", "NGram", "AUTO", "SaveState", "Medusa", "Lookahead"}),
    True: frozenset({"NGram", "AUTO", "SA", "PARD", "DFlash", "DSpark", "SaveState"}),
}


def check(reading: Reading) -> Iterator[Finding]:
    """Backend first."""
    name = reading.notes.get("type")
    backend = BACKENDS.get(str(reading.around.args.get("backend", "pytorch")), "pytorch")
    new = is_new(reading.release)
    if backend == "tensorrt" and new:
        yield Finding(
            "SPC154",
            f"the backend tensorrt does not exist in {reading.release}",
            reading.route("decoding_type"),
            help="leave the backend out (pytorch)",
        )
    elif name is not None and not _runs(str(name), backend, new):
        better = "tensorrt" if name in ENGINE_ONLY else "pytorch"
        yield Finding(
            "SPC154",
            f"{name} does not run on the backend {backend}",
            reading.route("decoding_type"),
            help=f"write backend: {better}",
        )


def _runs(name: str, backend: str, new: bool) -> bool:
    if backend == "tensorrt":
        return name in ENGINE_BACKEND
    if backend == "_autodeploy":
        return name not in NOT_AUTODEPLOY[new]
    return name not in ENGINE_ONLY
