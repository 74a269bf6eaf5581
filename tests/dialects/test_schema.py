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


NGRAM = {"method": "ngram", "num_speculative_tokens": 3}
TYPED = {"decoding_type": "MTP"}


@pytest.mark.parametrize(
    ("name", "file", "fits"),
    [
        ("vllm-0.31.0", NGRAM, True),
        ("vllm-0.31.0", {"model": "org/t", "max-model-len": 4096, "speculative-config": NGRAM}, True),
        ("vllm-0.31.0", {"speculative_config": json.dumps(NGRAM), "port": 8000}, True),
        ("vllm-0.31.0", {"spec-method": "ngram", "spec-tokens": 3, "tensor-parallel-size": 2}, True),
        ("vllm-0.31.0", {"speculative-config": NGRAM | {"promt": 1}}, False),
        ("vllm-0.31.0", {"spec-method": "NGRAM", "spec-tokens": 3}, False),
        ("sglang-0.5.22", {"model-path": "org/t", "speculative-algorithm": "NGRAM", "tp-size": 2}, True),
        ("sglang-0.5.22", {"speculative-draft-model": "org/d", "speculative-algorithm": "EAGLE3"}, True),
        ("sglang-0.5.22", {"speculative-num-step": 3}, False),
        ("sglang-0.5.22", {"speculative_num_steps": 3}, False),
        ("trtllm-1.2.1", {"max_batch_size": 8, "speculative_config": TYPED}, True),
        ("trtllm-1.2.1", {"speculative_decoding_config": TYPED}, False),
        ("trtllm-1.2.1", {"speculative_config": None}, False),
        ("trtllm-1.4.0rc0", {"speculative_config": None}, True),
        ("trtllm-1.4.0rc0", {"speculative_config": TYPED | {"mtp_eagle_one_model": True}}, False),
    ],
)
def test_files_as_people_keep_them(name: str, file: Any, fits: bool) -> None:
    assert jsonschema.Draft202012Validator(MADE[f"{name}.schema.json"]).is_valid(file) is fits
