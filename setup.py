"""Takes the folders that lie beside the package in a checkout into a built wheel; all else stands in pyproject.toml."""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

# specctl/resources.py looks for these beside the package in a checkout, and inside it elsewhere.
BESIDE = ("schemas", "presets")


class BuildWithFolders(build_py):
    """The ordinary build, and a copy of the folders inside the package."""

    def run(self) -> None:
        """An editable install uses the folders where they lie."""
        super().run()
        if self.editable_mode:
            return
        for name in BESIDE:
            source, copy = Path(name), Path(self.build_lib, "specctl", name)
            shutil.rmtree(copy, ignore_errors=True)
            if source.is_dir():
                shutil.copytree(source, copy)


setup(cmdclass={"build_py": BuildWithFolders})
