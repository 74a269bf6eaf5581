"""The house: who may import whom, where torch lives, how big things may grow, what must not be loaded to say no."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "specctl"
FLOORS = {
    "errors": 0,
    "resources": 0,
    "diagnostics": 0,
    "source": 0,
    "spec": 1,
    "modelinfo": 1,
    "dialects": 2,
    "planning": 2,
    "rules": 3,
    "runtime": 3,
    "server": 4,
    "bench": 4,
    "launch": 4,
    "presets": 4,
    "__init__": 4,
    "cli": 5,
    "__main__": 6,
}
# Rooms on one floor do not know each other; these are the exceptions.
NEIGHBOURS = {("source", "diagnostics"), ("source", "errors"), ("source", "resources"), ("resources", "errors")}
# runtime/ is the torch room; peers time other runtimes.
HEAVY = {"torch", "transformers", "safetensors", "gguf", "accelerate"}
TORCH_ROOMS = (PACKAGE / "runtime", PACKAGE / "bench" / "peers")
MODULES = sorted(PACKAGE.rglob("*.py"))


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, those under TYPE_CHECKING and inside functions too."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_every_room_has_a_floor() -> None:
    assert {room(path) for path in MODULES} <= FLOORS.keys()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_room_imports_only_from_lower_floors(path: Path) -> None:
    here = room(path)
    for name in imports(path):
        parts = name.split(".")
        if parts[0] != "specctl" or len(parts) < 2 or parts[1] not in FLOORS or parts[1] == here:
            continue
        allowed = FLOORS[parts[1]] < FLOORS[here] or (here, parts[1]) in NEIGHBOURS
        assert allowed, f"{here} (floor {FLOORS[here]}) imports {name} (floor {FLOORS[parts[1]]})"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_torch_lives_in_the_runtime_alone(path: Path) -> None:
    if any(path.is_relative_to(place) or path == place.with_suffix(".py") for place in TORCH_ROOMS):
        return
    heavy = {name.split(".")[0] for name in imports(path)} & HEAVY
    assert not heavy, f"{path} imports {heavy}"


@pytest.mark.parametrize("path", [p for p in MODULES if p.name == "__init__.py"], ids=lambda p: p.parent.name)
def test_every_package_has_its_door_sign(path: Path) -> None:
    sign = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").lower()
    if path.parent == PACKAGE:
        assert sign
        return
    for needed in ("here", "not", "enter"):
        assert needed in sign, f"{path}: a door sign says what belongs here, what does not, and who may enter"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= 400, f"{path} has grown too long"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= 75, f"{path}:{node.lineno} {node.name} has {length} lines"
    assert path.stem != "utils"


def test_nine_functions_in_ten_are_under_thirty_lines() -> None:
    lengths = sorted(
        (node.end_lineno or 0) - node.lineno + 1
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    assert lengths[int(len(lengths) * 0.9)] <= 30


def names_of_methods() -> set[str]:
    from specctl.spec.methods import METHODS

    return set(METHODS)


@pytest.mark.parametrize(
    "name", ["engine", "scheduler", "verify", "sampling", "sequence", "stats", "kv_cache", "build"]
)
def test_the_engine_names_no_method(name: str) -> None:
    tree = ast.parse((PACKAGE / "runtime" / f"{name}.py").read_text("utf-8"))
    words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert not words & names_of_methods()


LIGHT = ("import specctl", "import specctl.cli.main", "import specctl.rules")
COMMANDS = (
    ["--help"],
    ["validate-config", "--help"],
    ["validate-config", "--speculative-config", "{}"],
    ["explain", "metrics"],
    ["plan", "demo", "--draft", "demo-draft", "--gpu", "l4", "--context", "64"],
)
FORBIDDEN = ("torch", "transformers", "numpy", "fastapi", "pydantic")


def loaded_by(code: str) -> set[str]:
    report = f"{code}\nimport sys; print('LOADED', *sorted(m for m in {FORBIDDEN!r} if m in sys.modules))"
    out = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, timeout=120, check=False)
    line = next((line for line in reversed(out.stdout.splitlines()) if line.startswith("LOADED")), None)
    assert line is not None, out.stderr
    return set(line.split()[1:])


@pytest.mark.parametrize("code", LIGHT)
def test_what_must_stay_light_loads_nothing_heavy(code: str) -> None:
    assert loaded_by(code) == set()


@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
def test_saying_no_loads_nothing_heavy(argv: list[str]) -> None:
    code = f"from specctl.cli.main import main\ntry:\n    main({argv!r})\nexcept SystemExit:\n    pass"
    assert loaded_by(code) == set()


def test_the_check_of_loaded_modules_can_fail() -> None:
    assert loaded_by("import numpy") == {"numpy"}
