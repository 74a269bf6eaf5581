"""Writes the outputs of `specctl inspect` into docs/inspect.md, between their marks.

    python docs/inspect_page.py

A planted fault is made for the page: the bundled head demo-eagle with the two halves of its fusion exchanged.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from specctl.cli.main import run
from specctl.resources import bundled_dir, bundled_model

PAGE = Path(__file__).with_name("inspect.md")
MARK = re.compile(r"<!-- run: (.+?) -->\n.*?<!-- end -->", re.DOTALL)


def plant(place: Path) -> None:
    """A head whose token and hidden state enter in the other order."""
    source = bundled_model("demo-eagle")
    assert source is not None, "it comes with the package"
    shutil.copytree(source, place)
    tensors = load_file(place / "model.safetensors")
    tensors["fc.weight"] = torch.cat(tensors["fc.weight"].chunk(2, dim=1)[::-1], dim=1).contiguous()
    save_file(tensors, place / "model.safetensors")


def output(command: str, broken: Path) -> str:
    """What a command prints, with its status, and with names that are the same everywhere."""
    words = [str(broken) if word == "./swapped" else word for word in shlex.split(command)[1:]]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        status = run(words)
    text = out.getvalue().rstrip().replace(str(broken), "./swapped").replace(str(bundled_dir()), "…/bundled")
    return f"```\n$ {command}\n{text}\n$ echo $?\n{status}\n```"


def main() -> None:
    """Run every command that the page names."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        broken = Path(folder) / "swapped"
        plant(broken)
        page = MARK.sub(
            lambda found: f"<!-- run: {found[1]} -->\n{output(found[1], broken)}\n<!-- end -->", PAGE.read_text("utf-8")
        )
    PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
