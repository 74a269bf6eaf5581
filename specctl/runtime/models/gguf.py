"""GGUF files: dequantised once through transformers and the gguf library, kept as a safetensors folder in the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

from specctl.errors import DamagedError, MissingError


def cache_root() -> Path:
    """Where converted models are kept: ``$SPECCTL_CACHE``, else ``specctl`` under the user's cache folder."""
    explicit = os.environ.get("SPECCTL_CACHE")
    home = os.environ.get("XDG_CACHE_HOME")
    return Path(explicit) if explicit else (Path(home) if home else Path.home() / ".cache") / "specctl"


def as_folder(path: Path) -> Path:
    """The safetensors folder of the GGUF file ``path``, converted on first use.

    Raises DamagedError for a file that is not GGUF, MissingError where the libraries to read it are not installed.
    """
    with path.open("rb") as file:
        magic = file.read(4)
    if magic != b"GGUF":
        raise DamagedError(f"{path} is not a GGUF file: it begins with {magic!r}, not b'GGUF'")
    absent = [name for name in ("gguf", "accelerate") if find_spec(name) is None]
    if absent:
        raise MissingError(f"reading {path.name} needs {' and '.join(absent)}", help=f"pip install {' '.join(absent)}")
    folder = cache_root() / "gguf" / f"{path.stem}-{_fingerprint(path)}"
    if not (folder / "config.json").is_file():
        _convert(path, folder)
    return folder


def _fingerprint(path: Path) -> str:
    """Name, size and time of the file: enough to notice another file, without reading a hundred megabytes at each
    start.
    """
    facts = path.stat()
    return hashlib.sha256(f"{path.resolve()}|{facts.st_size}|{facts.st_mtime_ns}".encode()).hexdigest()[:16]


def _convert(path: Path, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix="converting-", dir=folder.parent))
    try:
        _write(path, draft)
        draft.rename(folder)
    except (ValueError, KeyError, OSError, NotImplementedError) as error:
        # NotImplementedError is how transformers and gguf answer an architecture or a quantisation they do not know.
        if not (folder / "config.json").is_file():  # another process may have finished first
            raise DamagedError(
                f"{path} ({path.stat().st_size:,} bytes) cannot be read as GGUF: {error}",
                help="the file may be truncated: compare its size and checksum with the publisher's; or it holds an "
                "architecture that transformers does not convert",
            ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write(path: Path, folder: Path) -> None:
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    # float32: the quantised values are products of small integers and half-precision scales; rounding them to half
    # precision again would change the model.
    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32)
    tied = model.config.tie_word_embeddings
    state = {name: value.contiguous() for name, value in model.state_dict().items() if not (tied and "lm_head" in name)}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    config = model.config.to_dict()
    config.pop("quantization_config", None)  # the tensors are plain now
    model.config.from_dict(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name).save_pretrained(folder)
