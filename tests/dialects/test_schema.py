"""The committed schemas are those of the rows, are schemas, and take what the writers write."""

from __future__ import annotations

import json
from typing import Any

import pytest

from specctl.dialects.convert import native_method
from specctl.dialects.dialect import DIALECTS
from specctl.dialects.schema import schemas, text_of
from specctl.resources import schemas_dir
from specctl.rules.matrix import COLUMNS, plain_spec
from specctl.spec import METHODS

jsonschema = pytest.importorskip("jsonschema")
MADE = schemas()


@pytest.mark.parametrize("name", MADE)
def test_committed_schemas_are_fresh(name: str) -> None:
    assert (schemas_dir() / name).read_text(encoding="utf-8") == text_of(MADE[name]), (
        "run python -m specctl.dialects.schema"
    )


@pytest.mark.parametrize("name", MADE)
def test_they_are_schemas(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(MADE[name])


@pytest.mark.parametrize(("engine", "release"), COLUMNS)
@pytest.mark.parametrize("method", METHODS)
def test_written_settings_fit(method: str, engine: str, release: str) -> None:
    spec = plain_spec(method)
    if engine == "sglang" or native_method(spec, engine, release) is None:
        return
    name = "specctl.schema.json" if engine == "specctl" else f"{engine}-{release}.schema.json"
    written: Any = json.loads(json.dumps(DIALECTS[engine].write(spec, release)))
    jsonschema.validate(written, MADE[name])


def test_a_typo_does_not_fit() -> None:
    wrong = {"method": "ngram", "num_speculative_tokns": 3}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, MADE["vllm-0.31.0.schema.json"])
