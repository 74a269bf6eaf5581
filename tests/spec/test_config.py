"""The canonical spec: equality, JSON shape, and back."""

from __future__ import annotations

import pytest

from specctl.spec import METHODS, Acceptance, DraftOptions, Origin, Release, ScheduleStep, SpecDecodeConfig, Tree
from specctl.spec.methods import Eagle3, Ngram
from specctl.spec.release import known


@pytest.mark.parametrize("name", METHODS)
def test_every_method_survives_its_json_shape(name: str) -> None:
    spec = SpecDecodeConfig(METHODS[name](), 4, model="org/draft")
    assert SpecDecodeConfig.from_dict(spec.as_dict()) == spec


def test_full_spec_survives_its_json_shape() -> None:
    spec = SpecDecodeConfig(
        Eagle3(aux_layers=(1, 15, 28)),
        5,
        model="org/head",
        target="demo",
        draft_sample_method="probabilistic",
        acceptance=Acceptance("synthetic", synthetic_rates=(0.8, 0.5)),
        schedule=(ScheduleStep(1, 8, 5), ScheduleStep(9, None, 0)),
        tree=Tree(4, 16),
        draft=DraftOptions(tensor_parallel_size=2, quantization="fp8"),
        engine_options={"vllm": {"disable_padded_drafter_batch": True}},
    )
    assert SpecDecodeConfig.from_dict(spec.as_dict()) == spec


def test_equality_leaves_origin_and_places_out() -> None:
    one = SpecDecodeConfig(Ngram(1, 4), 4, origin=Origin("a.yaml", "trtllm"), places={"method": 1})
    assert one == SpecDecodeConfig(Ngram(1, 4), 4)
    assert one != SpecDecodeConfig(Ngram(2, 4), 4)


def test_a_candidate_stands_before_its_release() -> None:
    assert Release.parse("1.2.1") < Release.parse("1.4.0rc0") < Release.parse("1.4.0")
    assert Release.parse("v0.31") == Release.parse("0.31.0")
    with pytest.raises(ValueError, match="no release number"):
        Release.parse("latest")


def test_unknown_releases_take_the_nearest_known_one_before() -> None:
    assert known("trtllm", "1.3.0") == "1.2.1"
    assert known("trtllm", "1.5.0") == "1.4.0rc0"
    assert known("trtllm", "1.0.0") == "1.2.1"
    assert known("vllm", None) == "0.31.0"
