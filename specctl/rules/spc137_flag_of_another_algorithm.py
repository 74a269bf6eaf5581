"""A flag works with one algorithm only, and SGLang stops or ignores it with this one.

Bad:

    sglang: --speculative-algorithm EAGLE3 --speculative-draft-model-path org/head --speculative-skip-dp-mlp-sync

Good:

    sglang: --speculative-algorithm EAGLE --speculative-skip-dp-mlp-sync
"""

from collections.abc import Iterator

from specctl.dialects.reading import Finding, Reading

ENGINES = ("sglang",)
SKIP, A2A = "speculative_skip_dp_mlp_sync", "speculative_moe_a2a_backend"
OWNERS = {
    "speculative_ngram_": "NGRAM",
    "speculative_dflash_": "DFLASH",
    "speculative_domino_": "DFLASH",
    "speculative_dspark_": "DSPARK",
    "uno_lora_path": "UNO",
}


def check(reading: Reading) -> Iterator[Finding]:
    """What stops the launch, then what is silently ignored."""
    name = reading.notes.get("algorithm")
    if reading.get(SKIP) and name != "EAGLE":
        yield Finding(
            "SPC137",
            f"--speculative-skip-dp-mlp-sync only goes with EAGLE, not with {name or 'no algorithm'}",
            reading.route(SKIP),
            help="leave it out",
        )
    if reading.get(A2A) == "deepep_v2":
        yield Finding(
            "SPC137",
            "the draft's all-to-all backend deepep_v2 is always refused",
            reading.route(A2A),
            help="write deepep",
        )
    role = reading.get("decoupled_spec_role", "null")
    ends = ("decoupled_spec_bind_endpoint", "decoupled_spec_connect_endpoints", "decoupled_spec_rank")
    if role != "null" and not all(reading.given(key) for key in ends):
        yield Finding(
            "SPC137",
            f"the role {role} needs bind endpoint, connect endpoints and rank",
            reading.route("decoupled_spec_role"),
            help="leave the role out; no worker of this release uses it",
        )
    if name is None:
        return
    for key, value in reading.values.items():
        owner = next((owner for head, owner in OWNERS.items() if key.startswith(head)), None)
        if owner and owner != name and value.good and value.value is not None:
            yield Finding(
                "SPC137",
                f"--{key.replace('_', '-')} has no effect with {name}; it is {owner}'s",
                value.route,
                help="leave it out",
                severity="warning",
            )
