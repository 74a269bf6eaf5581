"""The documents say what the code does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_table_of_methods_is_fresh() -> None:
    done = subprocess.run(
        [sys.executable, "docs/methods_table.py", "--check"], cwd=ROOT, timeout=120, check=False, capture_output=True
    )
    assert done.returncode == 0, f"run: python docs/methods_table.py\n{done.stderr.decode()}"


def test_the_readme_has_its_two_set_up_commands() -> None:
    commands = re.findall(r"<!-- (\w+) command -->\n```\n(.+?)\n```\n<!-- end -->", README, flags=re.DOTALL)
    assert [name for name, _ in commands] == ["first", "test"]
    assert "specctl bench" in commands[0][1]
    assert "pytest" in commands[1][1]


def test_every_link_inside_the_repository_leads_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "train" / "README.md"]:
        for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", document.read_text("utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"
