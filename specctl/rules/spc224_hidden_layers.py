"""The target layers that an EAGLE-3 head reads are out of range, repeated, or too few.

Without explicit ids the engines read three layers spread over the target; a very shallow target has no three.
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

NEEDS = ("target", "draft")
SEVERITY = "warning"
KEYS = ("eagle_aux_hidden_state_layer_ids", "aux_hidden_state_layer_ids")


def applies(reading: Reading) -> bool:
    """EAGLE-3 only."""
    return not reading.off and reading.spec is not None and reading.spec.method.name == "eagle3"


def check(reading: Reading) -> Iterator[Finding]:
    """Ids of the head's config, else the default ones."""
    target, draft = reading.around.target_facts, reading.notes["draft"]
    assert target is not None
    layers = target.num_layers
    listed = next((draft.config[key] for key in KEYS if isinstance(draft.config.get(key), list)), None)
    if layers is None:
        return
    if listed is None:
        default = (1, layers // 2 - 1, layers - 4) if reading.engine == "trtllm" else (2, layers // 2, layers - 3)
        if len(set(default)) < 3 or min(default) < 0:
            yield Finding(
                "SPC224",
                f"a target of {layers} layers has no three different layers to read ({', '.join(map(str, default))})",
                (),
                help="give the layer ids in the head's config.json",
            )
        return
    ids = [each for each in listed if isinstance(each, int)]
    wrong = [each for each in ids if not -layers <= each <= layers]
    if wrong or len(set(ids)) != len(ids):
        fault = f"layer {wrong[0]} does not exist" if wrong else "a layer stands twice"
        yield Finding(
            "SPC224",
            f"the head reads the layers {ids} of a target with {layers}: {fault}",
            (),
            help="use the head that was trained for this target",
        )
