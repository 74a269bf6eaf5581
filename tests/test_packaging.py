"""What is built from the checkout carries the data that specctl needs away from it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ASK = """
from pathlib import Path
import specctl
from specctl import resources
home = Path(specctl.__file__).parent
assert home.is_relative_to({built!r}), home
assert sorted(path.name for path in resources.schemas_dir().iterdir()) == {schemas!r}
assert resources.preset_names() == {presets!r}
from specctl import presets
assert presets.check("gpt-oss-120b-eagle3-v3").holds(strict=True)
assert resources.bundled_model("demo") == home / "bundled" / "demo"
assert (home / "py.typed").is_file()
assert (home / "bundled" / "demo" / "model.safetensors").stat().st_size > 1e5
"""


def test_a_built_package_finds_its_schemas_presets_and_models(tmp_path: Path) -> None:
    built = tmp_path / "built"
    command = [sys.executable, "setup.py", "-q", "egg_info", "-e", str(tmp_path), "build_py", "-d", str(built)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=120, capture_output=True)
    presets = ROOT / "presets"
    script = ASK.format(
        built=str(built),
        schemas=sorted(path.name for path in (ROOT / "schemas").iterdir()),
        presets=sorted(path.relative_to(presets).with_suffix("").as_posix() for path in presets.rglob("*.yaml")),
    )
    environment = {**os.environ, "PYTHONPATH": str(built)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, timeout=120, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
