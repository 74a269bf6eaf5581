# ruff: noqa: SIM905 (a list of words reads better as one text)
"""SGLang's flags of speculation, its algorithm names, and the writer.

Facts: SGLang 0.5.22, `srt/arg_groups/fields/spec.py`. Everything is a flat flag read by argparse; hyphens only;
`int()` and `float()` read the numbers. A row's key is the flag with underscores, as SGLang's Python arguments spell
it."""

from __future__ import annotations

from typing import Any

from specctl.dialects.field import Field, default_at, has_path, read_path
from specctl.dialects.words import sglang_attention, sglang_cache
from specctl.spec import SpecDecodeConfig

ENGINE = "sglang"
LOAD_FORMATS = tuple(
    (
        "auto pt safetensors instanttensor npcache dummy sharded_state presharded gguf expert_pack "
        "bitsandbytes mistral layered flash_rl remote remote_instance fastsafetensors private runai_streamer"
    ).split()
)
QUANTIZATIONS = tuple(
    (
        "awq fp8 mxfp8 gptq gptq_marlin awq_marlin bitsandbytes gguf modelopt modelopt_fp8 modelopt_fp4 "
        "nvfp4_online modelopt_mixed petit_nvfp4 w8a8_int8 w8a8_fp8 moe_wna16 w4afp8 mxfp4 auto-round "
        "auto-round-int8 compressed-tensors modelslim mxfp_w4a8 quark quark_int4fp8_moe quark_mxfp4 mlx_q4 "
        "mlx_q8 unquant humming"
    ).split()
)
MOE_RUNNERS = tuple(
    (
        "auto deep_gemm triton triton_kernel flashinfer_trtllm experimental_sgl_trtllm "
        "flashinfer_trtllm_routed flashinfer_cutlass flashinfer_mxfp4 flashinfer_cutedsl flashinfer_megamoe "
        "cutlass aiter marlin humming experimental_sgl_marlin hpc_ops megamoe intel_xpu"
    ).split()
)
MOE_A2A = tuple(("none deepep mooncake nixl mori ascend_fuseep flashinfer megamoe deepep_v2 pplx ascend_tp").split())
ALGORITHMS = ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM", "DFLASH", "DSPARK", "UNO", "FROZEN_KV_MTP", "NONE")
EAGLE_FAMILY = frozenset({"EAGLE", "EAGLE3", "STANDALONE"})
SWITCH = "bool"

ROWS: tuple[Field, ...] = (
    Field("speculative_algorithm", None, doc="how tokens are drafted; turned into upper case"),
    Field("speculative_draft_model_path", "model", aliases=("speculative_draft_model",), doc="the draft: folder or id"),
    Field("speculative_num_steps", None, "int", doc="sequential draft forwards, the depth of the tree"),
    Field("speculative_eagle_topk", None, "int", doc="branches a step; 1 is a chain"),
    Field("speculative_num_draft_tokens", None, "int", doc="verified nodes a step, the root counted"),
    Field(
        "speculative_draft_model_revision",
        "draft.revision",
        doc="revision of the draft; `main` where a path is given without it",
    ),
    Field(
        "speculative_draft_load_format",
        "draft.load_format",
        choices=LOAD_FORMATS,
        doc="how the draft's weights are loaded",
    ),
    Field(
        "speculative_draft_model_quantization",
        "draft.quantization",
        choices=QUANTIZATIONS,
        doc="quantization of the draft; unset: the target's flag; `unquant`: none",
    ),
    Field(
        "speculative_draft_attention_backend",
        "draft.attention_backend",
        dump=sglang_attention,
        doc="attention kernels of the draft",
    ),
    Field(
        "speculative_draft_kv_cache_dtype",
        "draft.kv_cache_dtype",
        choices=("auto", "fp8_e5m2", "fp8_e4m3", "bf16", "bfloat16"),
        dump=sglang_cache,
        doc="number format of the draft's cache",
    ),
    Field("speculative_draft_window_size", "draft.window_size", "int", doc="sliding window of the draft, in tokens"),
    Field("speculative_draft_sink_size", "draft.sink_size", "int", doc="first tokens kept beside the window"),
    Field(
        "speculative_moe_runner_backend", "draft.moe_backend", choices=MOE_RUNNERS, doc="expert kernels of the draft"
    ),
    Field(
        "speculative_accept_threshold_single",
        "acceptance.threshold_single",
        "float",
        default=1.0,
        doc="accept a draft token whose target probability is at least this",
    ),
    Field(
        "speculative_accept_threshold_acc",
        "acceptance.threshold_acc",
        "float",
        default=1.0,
        doc="divides the accumulated target probability",
    ),
    Field("speculative_use_rejection_sampling", None, SWITCH, doc="sampled drafts with rejection sampling"),
    Field("speculative_use_block_verification", None, SWITCH, doc="joint verification of a block"),
    Field("speculative_token_map", None, doc="table of frequent tokens (FR-Spec)"),
    Field(
        "speculative_attention_mode",
        None,
        choices=("prefill", "decode"),
        doc="which half of a split attention backend verifies",
    ),
    Field("speculative_moe_a2a_backend", None, choices=MOE_A2A, doc="expert all-to-all of the draft"),
    Field("speculative_enable_w4a4_mxfp4_megamoe", None, SWITCH, doc="MegaMoE type of the draft"),
    Field(
        "speculative_dsa_topk_backend",
        None,
        choices=("sgl-kernel", "torch", "flashinfer"),
        doc="indexer kernels of the draft",
    ),
    Field("speculative_skip_dp_mlp_sync", None, SWITCH, doc="skip a synchronisation of attention DP"),
    Field("enable_multi_layer_eagle", None, SWITCH, doc="one prediction layer for each step"),
    Field("speculative_adaptive", None, SWITCH, doc="draft length follows the acceptance"),
    Field("speculative_adaptive_config", None, doc="JSON file of the adaptive policy"),
    Field("speculative_dflash_block_size", None, "int", doc="block of DFLASH, the anchor counted"),
    Field("speculative_domino_candidate_pool_size", None, "int", doc="candidates of Domino drafts"),
    Field("speculative_dspark_block_size", None, "int", doc="drafted tokens of DSPARK, the root not counted"),
    Field("speculative_dspark_sps_table_path", None, doc="cost table of ragged verification"),
    Field("speculative_dspark_confidence_sts_path", None, doc="calibration of ragged verification"),
    Field(
        "speculative_dspark_align_verify_tokens_to_graph_tier",
        None,
        SWITCH,
        doc="round the verified width to a graph size",
    ),
    Field("uno_lora_path", None, doc="the LoRA adapter of UNO"),
    Field("speculative_ngram_min_bfs_breadth", None, "int", doc="least breadth of the lookup tree"),
    Field("speculative_ngram_max_bfs_breadth", None, "int", doc="greatest breadth of the lookup tree; becomes topk"),
    Field(
        "speculative_ngram_match_type",
        None,
        choices=("BFS", "PROB"),
        doc="order of matches: by recency or by frequency",
    ),
    Field("speculative_ngram_max_trie_depth", None, "int", doc="matched suffix and draft together, in tokens"),
    Field("speculative_ngram_capacity", None, "int", doc="nodes of the trie"),
    Field("speculative_ngram_external_corpus_path", None, doc="JSON lines that the trie is filled with"),
    Field("speculative_ngram_external_sam_budget", None, "int", doc="draft nodes kept for the corpus"),
    Field("speculative_ngram_external_corpus_max_tokens", None, "int", doc="tokens read of the corpus"),
    Field("decoupled_spec_role", None, choices=("null", "verifier", "drafter"), doc="role of a separated draft"),
    Field("decoupled_spec_bind_endpoint", None, doc="endpoint of a separated draft"),
    Field("decoupled_spec_connect_endpoints", None, doc="endpoints of a separated draft"),
    Field("decoupled_spec_rank", None, "int", doc="rank of a separated draft"),
    Field("spec_trace_dir", None, doc="folder for traces"),
)

# Flags of older releases, and what took their place.
REMOVED_FLAGS: dict[str, str | None] = {
    "--speculative-ngram-min-match-window-size": None,
    "--speculative-ngram-max-match-window-size": "--speculative-ngram-max-trie-depth",
    "--speculative-ngram-branch-length": "--speculative-ngram-max-trie-depth",
    "--speculative-dflash-draft-window-size": "--speculative-draft-window-size",
    "--speculative-dspark-confidence-threshold": None,
    "--cuda-graph-max-bs": "--cuda-graph-max-bs-decode",
    "--cuda-graph-bs": "--cuda-graph-bs-decode",
    "--disable-piecewise-cuda-graph": None,
    "--enable-nextn": "--speculative-algorithm EAGLE",
    "--enable-mtp": "--speculative-algorithm EAGLE",
    "--draft-model-path": "--speculative-draft-model-path",
    "--speculative-model": "--speculative-draft-model-path",
    "--num-speculative-tokens": "--speculative-num-steps",
    "--speculative-num-speculative-tokens": "--speculative-num-steps",
    "--speculative-disable-by-batch-size": None,
    "--speculative-config": None,
    "--spec-method": "--speculative-algorithm",
    "--spec-model": "--speculative-draft-model-path",
    "--spec-tokens": "--speculative-num-steps",
}


def flag(key: str) -> str:
    """The flag of a row's key."""
    return "--" + key.replace("_", "-")


def values(spec: SpecDecodeConfig) -> dict[str, Any]:
    """The flags of a spec by key, all of the triple always among them; True stands for a switch."""
    found: dict[str, Any] = {"speculative_algorithm": algorithm(spec)}
    for row in ROWS:
        if row.path is None or not has_path(type(spec.method), row.path):
            continue
        value = read_path(spec, row.path)
        if value is None or value == default_at(spec, row.path):
            continue
        value = row.dump(value) if row.dump else value
        if value is not None and (not row.choices or value in row.choices):
            found[row.key] = value
    found |= _counts(spec, found["speculative_algorithm"])
    if spec.draft_sample_method == "probabilistic":
        found["speculative_use_rejection_sampling"] = True
    if spec.acceptance.method == "block":
        found["speculative_use_block_verification"] = True
    return {
        key: value for key, value in (found | dict(spec.engine_options.get(ENGINE, {}))).items() if value is not None
    }


def write(spec: SpecDecodeConfig, release: str) -> list[str]:
    """The flags of a spec as tokens. Values without a counterpart are left out; `convert` names them."""
    del release  # one known release so far
    tokens: list[str] = []
    for key, value in values(spec).items():
        if value is False and key == "speculative_enable_w4a4_mxfp4_megamoe":
            tokens.append("--no-" + key.replace("_", "-"))
        elif value is True:
            tokens.append(flag(key))
        elif value is not False:
            tokens += [flag(key), str(value)]
    return tokens


def algorithm(spec: SpecDecodeConfig) -> str | None:
    """SGLang's name of the spec's method; None where it has none."""
    name = spec.method.name
    if name == "mtp":
        return "NEXTN" if spec.model is not None else "EAGLE"
    table = {
        "ngram": "NGRAM",
        "draft_model": "STANDALONE",
        "eagle": "EAGLE",
        "eagle3": "EAGLE3",
        "dflash": "DFLASH",
        "dspark": "DSPARK",
        "uno": "UNO",
    }
    return table.get(name)


def _counts(spec: SpecDecodeConfig, name: str | None) -> dict[str, Any]:
    count = spec.num_speculative_tokens
    if count is None or name is None:
        return {}
    if name == "NGRAM":
        breadth = {"speculative_ngram_max_bfs_breadth": 1}
        if (
            getattr(spec.method, "search", "") != "trie"
            or spec.engine_options.get(ENGINE, {}).items() >= breadth.items()
        ):
            return _triple(count + 1, count + 1) | breadth  # the depth that the engine works out by itself
        return {"speculative_num_draft_tokens": count + 1}  # a wide tree: the engine works out the rest by its breadth
    if name == "DSPARK":
        return _triple(1, count + 1) | {"speculative_dspark_block_size": count}
    if name in ("DFLASH", "UNO"):
        return _triple(1, count + 1)
    # A static tree has no words here; `convert` names the loss.
    topk = (spec.tree and spec.tree.topk) or 1
    nodes = (spec.tree and spec.tree.num_nodes) or topk * count
    return _triple(count, nodes + 1, topk)


def _triple(steps: int, width: int, topk: int = 1) -> dict[str, Any]:
    return {"speculative_num_steps": steps, "speculative_eagle_topk": topk, "speculative_num_draft_tokens": width}
