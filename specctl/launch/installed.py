"""Which engine stands behind a command, told by package metadata; the engine itself is not imported."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from specctl.errors import MissingError, SpecctlError

# The file's first lines hold the interpreter; more of a program that may be a binary is not read.
_HEAD_BYTES = 1024
_ASK_SECONDS = 60
_ASK = """
import sys
from importlib.metadata import PackageNotFoundError, version
for name in sys.argv[1:]:
    try:
        print(version(name))
        break
    except PackageNotFoundError:
        pass
"""


@dataclass(frozen=True)
class Installed:
    """``program``: what is started. ``version``: of the engine's package as its metadata says, None where there is
    none.
    """

    program: Path
    version: str | None = None


def find_program(command: str | None, name: str) -> Path:
    """The program of an engine: ``command`` (a path or a name on PATH), else ``name`` on PATH.

    Raises MissingError where it is not there, SpecctlError where it cannot be run.
    """
    wanted = command or name
    found = shutil.which(wanted)
    if found is not None:
        return Path(found)
    if command is None:  # a folder or file of that name in the current folder is not meant
        raise MissingError(
            f"{name} is not on PATH", help=f"activate its environment, or give --engine-command /its/venv/bin/{name}"
        )
    if Path(command).is_dir():
        raise SpecctlError(
            f"--engine-command {command} is a folder", help=f"give the program, such as {command}/{name}"
        )
    if Path(command).is_file():
        raise SpecctlError(f"--engine-command {command} cannot be run", help=f"chmod +x {command}")
    raise MissingError(f"--engine-command {command} was not found", help=f"give the path of the program {name}")


def interpreter_of(program: Path) -> Path | None:
    """The Python behind a program: itself, the one that its first lines name, or the one beside it."""
    if is_python(program):
        return program
    try:
        with program.open("rb") as file:
            head = file.read(_HEAD_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    return _named_in(head) or _beside(program)


def is_python(program: Path) -> bool:
    """Whether a program is a Python interpreter, by its name."""
    return re.fullmatch(r"python(\d+(\.\d+)*)?t?(\.exe)?", program.name) is not None


def _named_in(head: str) -> Path | None:
    lines = head.splitlines()
    if not lines or not lines[0].startswith("#!"):
        return None
    words = lines[0][2:].split()
    if words and Path(words[0]).name == "env":
        names = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        found = shutil.which(names[0]) if names else None
        return Path(found) if found and is_python(Path(found)) else None
    if words and is_python(Path(words[0])):
        return _if_there(lines[0][2:].strip()) or _if_there(words[0])
    # pip and uv write long paths, and paths with blanks, behind an sh that runs them.
    trick = re.match(r"""'''exec' (?:"([^"]+)"|(\S+)) """, lines[1]) if len(lines) > 1 else None
    return _if_there(trick.group(1) or trick.group(2)) if trick else None


def _if_there(path: str) -> Path | None:
    return Path(path) if Path(path).is_file() else None


def _beside(program: Path) -> Path | None:
    return next((path for name in ("python3", "python") if (path := program.parent / name).is_file()), None)


def installed(program: Path, distributions: tuple[str, ...]) -> Installed:
    """The engine behind ``program``; ``distributions`` are the names that its package goes by."""
    python = interpreter_of(program)
    if python is None:
        return Installed(program)
    try:
        answer = subprocess.run(
            [python, "-c", _ASK, *distributions],
            capture_output=True, text=True, timeout=_ASK_SECONDS, cwd="/", check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return Installed(program)
    return Installed(program, answer.stdout.strip() or None if answer.returncode == 0 else None)
