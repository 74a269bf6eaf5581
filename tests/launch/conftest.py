"""A stand-in engine as a program, and a free port."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

STAND_IN = Path(__file__).with_name("stand_in.py")


def make_program(folder: Path, name: str, interpreter: str = sys.executable) -> Path:
    """A script called ``name`` that runs the stand-in, with a first line as pip writes it."""
    program = folder / name
    program.write_text(f"#!{interpreter}\n{STAND_IN.read_text('utf-8')}", "utf-8")
    program.chmod(0o755)
    return program


@pytest.fixture
def port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return make_program(tmp_path, "vllm")
