"""The bench's modules cost nothing to import; torch comes when a model is loaded."""

from __future__ import annotations

import subprocess
import sys

MODULES = ["candidates", "compare", "load", "metrics", "peers", "progress", "report", "results", "run", "session"]
MODULES += ["verdict", "workloads"]


def test_no_heavy_import() -> None:
    code = f"import sys; import {', '.join(f'specctl.bench.{name}' for name in MODULES)}, specctl.cli.bench\n"
    code += "print(*{'torch', 'transformers', 'numpy', 'rich', 'fastapi'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout.strip()) == ("", "")
