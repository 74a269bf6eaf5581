"""Finds a checkpoint by name and reads its config.json."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from specctl.modelinfo.facts import ModelFacts
from specctl.resources import BUNDLED_NAMES, find_model


@dataclass(frozen=True)
class ModelProblem:
    """Why a checkpoint could not be read: `missing`, `unknown` (a hub id that is not here), `no-config`,
    `bad-config` or `damaged`.
    """

    kind: str
    message: str


def looks_local(name: str) -> bool:
    """Whether a name can only mean a folder or file here: a path, or a first part that is a folder of this place."""
    if not name.strip():
        return True
    if name.startswith(("/", "./", "../", "~")) or "\\" in name or name.count("/") > 1:
        return "://" not in name
    try:
        return "/" in name and Path(name.split("/", 1)[0]).is_dir()
    except (OSError, ValueError):
        return False


@lru_cache(maxsize=256)
def _config(path: Path, _stamp: int) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def read_facts(name: str) -> ModelFacts | ModelProblem:
    """The facts of the checkpoint that `name` means (folder, cached id or bundled name), or why there are none."""
    path = find_model(name) if name.strip() else None
    if path is None:
        if name in BUNDLED_NAMES or not looks_local(name):
            return ModelProblem("unknown", f"{name!r} is not on this machine, so its config.json could not be read")
        return ModelProblem("missing", f"{name!r} does not exist; looked for {Path(name).absolute()}")
    if path.is_file():
        return _of_gguf(name, path.absolute())
    return facts_of(name, path)


def _of_gguf(name: str, path: Path) -> ModelFacts | ModelProblem:
    from specctl.modelinfo.gguf import BadHeader, read_header

    try:
        return ModelFacts(name, path, read_header(path).config)
    except BadHeader as error:
        return ModelProblem("damaged", f"{path} is no whole GGUF file: {error}")
    except OSError as error:
        return ModelProblem("missing", f"{path} cannot be read: {error.strerror or error}")


def facts_of(name: str, path: Path) -> ModelFacts | ModelProblem:
    """The facts of the folder `path`, called `name`."""
    path = path.absolute()
    file = path / "config.json"
    try:
        config = _config(file, file.stat().st_mtime_ns)
    except FileNotFoundError:
        return ModelProblem(
            "no-config", _adapter(path) or f"the folder {path} has no config.json; a model folder needs one"
        )
    except OSError as error:
        return ModelProblem("bad-config", f"{file} cannot be read: {error.strerror or error}")
    except (ValueError, RecursionError) as error:
        return ModelProblem("bad-config", f"{file} is not JSON: {error}")
    if not isinstance(config, dict):
        return ModelProblem("bad-config", f"{file} holds no JSON object")
    return ModelFacts(name, path, config)


def _adapter(path: Path) -> str | None:
    """What to say of a folder that holds a LoRA adapter in place of a model."""
    try:
        base = json.loads((path / "adapter_config.json").read_text(encoding="utf-8")).get("base_model_name_or_path")
    except (OSError, ValueError, AttributeError):
        return None
    return f"{path} is an adapter (LoRA) of {base or 'a model that it does not name'}, no model by itself"
