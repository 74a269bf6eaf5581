"""`specctl inspect`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from specctl.cli.probe import ProbeOptions, page, run_probe
from specctl.errors import EXIT_FINDINGS, EXIT_OK, MissingError, SpecctlError, UsageError

if TYPE_CHECKING:
    from specctl.modelinfo import ModelFacts
    from specctl.modelinfo.fit import Check

_SIZES = ("layers", "hidden_size", "heads", "kv_heads", "vocab_size", "draft_vocab_size", "context")
_MARKS = {"ok": "ok  ", "note": "note", "fail": "FAIL", "skipped": "?   "}


def command(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Folder, GGUF file, cached id or bundled name.")],
    draft: Annotated[str | None, typer.Option(help="Say whether this draft fits MODEL.")] = None,
    path: Annotated[bool, typer.Option("--path", help="Print where the checkpoint lies, and nothing else.")] = False,
    probe: Annotated[bool, typer.Option("--probe", help="Load both, measure, and try what may be wrong.")] = False,
    prompts: Annotated[str | None, typer.Option(metavar="FILE", help="Prompts of --probe. [bundled ones]")] = None,
    num_speculative_tokens: Annotated[int, typer.Option("--num-speculative-tokens", "--k", min=1, max=16)] = 3,
    dtype: Annotated[str, typer.Option(help="Of --probe: auto, float32, bfloat16, float16, float64.")] = "auto",
    device: Annotated[str, typer.Option(help="Of --probe: auto, cpu, cuda.")] = "auto",
    format: Annotated[str, typer.Option(help="text or json.")] = "text",
) -> int:
    """Say what a checkpoint is, and whether a draft fits it. Reads JSON files and headers, weights for --probe."""
    if format not in ("text", "json"):
        raise UsageError(f"unknown format {format!r}", help="one of text, json")
    if probe and draft is None:
        raise UsageError("--probe tries a draft, and none is named", help="add --draft")
    target = _facts(model)
    if path:
        print(target.path)
        return EXIT_OK
    from specctl.modelinfo.describe import describe

    about = describe(target)
    if draft is None:
        print(json.dumps({"format_version": 1, "target": about}, indent=2) if format == "json" else _page(about))
        return EXIT_FINDINGS if about["damage"] else EXIT_OK
    options = ProbeOptions(prompts, dtype, device, num_speculative_tokens) if probe else None
    return _pair(target, about, _facts(draft), format, options)


def _pair(
    target: ModelFacts, about: dict[str, Any], draft: ModelFacts, format: str, options: ProbeOptions | None
) -> int:
    from specctl.modelinfo.describe import describe
    from specctl.modelinfo.fit import check_fit, fits, pair_of

    other = describe(draft)
    pair = pair_of(target, draft)
    checks = check_fit(pair)
    verdict = fits(checks)
    probed = run_probe(pair, options) if options else None
    if format == "json":
        listed = [check.as_dict() for check in checks]
        found = {"format_version": 1, "target": about, "draft": other, "fits": verdict, "checks": listed}
        print(json.dumps(found | ({"probe": probed.as_dict()} if probed else {}), indent=2))
    else:
        print(f"{_page(about)}\n\n{_page(other)}\n\n{_table(checks)}\n\n{_sentence(verdict, target, draft)}")
        if probed:
            print(f"\n{page(probed)}")
    return EXIT_FINDINGS if verdict == "no" or (probed and probed.broken) else EXIT_OK


def _facts(name: str) -> ModelFacts:
    """The checkpoint's facts; a missing one ends with 3, one that cannot be read with its own words."""
    from specctl.modelinfo import ModelProblem, read_facts
    from specctl.resources import resolve_model

    found = read_facts(name)
    if not isinstance(found, ModelProblem):
        return found
    if found.kind in ("missing", "unknown"):
        resolve_model(name)  # raises, naming every place that was looked at
    if found.kind == "no-config":
        adapter = "(LoRA)" in found.message
        cure = "merge it into its base first" if adapter else "give the folder that holds the checkpoint's config.json"
        raise SpecctlError(found.message, help=cure)
    raise MissingError(found.message)


def _page(about: dict[str, Any]) -> str:
    """One checkpoint as text."""
    lines = [f"{about['name']}: {_what(about)}", f"  path         {about['path']}"]
    kind = ", ".join(str(about[key]) for key in ("architecture", "model_type") if about[key])
    lines.append(f"  family       {kind or 'not named in config.json'}")
    sizes = [f"{key.replace('_', ' ')} {about[key]}" for key in _SIZES if about[key] is not None]
    lines.append(f"  sizes        {', '.join(sizes)}")
    lines.append(f"  weights      {_weights(about)}")
    if about["mtp_layers"]:
        lines.append(f"  prediction   {_prediction(about['mtp_layers'])}")
    if about["verifier"]:
        lines.append(f"  made for     {about['verifier']}")
    lines.append(f"  tokenizer    {_tokenizer(about)}")
    if about["damage"]:
        lines.append(f"  DAMAGED      {about['damage']}")
    return "\n".join(lines)


def _what(about: dict[str, Any]) -> str:
    if about["kind"] == "draft":
        return f"a draft for method {about['method']}"
    return f"a language model; methods: {', '.join(about['methods'])}"


def _weights(about: dict[str, Any]) -> str:
    size, count = about["weights_bytes"], about["parameters"]
    parts = [f"{count:,} parameters" if count else None, f"{size / 1e9:.3g} GB" if size else None]
    parts += [about["dtype"], f"quantized by {about['quantization']}" if about["quantization"] else None]
    return ", ".join(part for part in parts if part) or "no safetensors files here"


def _prediction(layers: dict[str, int | str | None]) -> str:
    declared, found, fault = layers["declared"], layers["found"], layers["fault"]
    if found is None:
        told = "config.json counts none" if declared is None else f"{declared} layers declared"
        return f"{told}; no tensor names to look at"
    told = f"{found} layer{'s' * (found != 1)}"
    if declared is None:
        told += "; config.json does not count them"
    elif found != declared:
        told = f"config.json declares {declared}, the tensors hold {found}"
    return f"{told}; {fault}" if fault else told


def _tokenizer(about: dict[str, Any]) -> str:
    none = "none that can be read" if about["kind"] == "target" else "none of its own"
    tokens = f"{about['tokens']} tokens" if about["tokens"] else none
    template = {True: ", chat template", False: ", no chat template", None: ""}[about["chat_template"]]
    return tokens + (template if about["kind"] == "target" else "")


def _table(checks: list[Check]) -> str:
    width = max(len(check.name) for check in checks)
    return "\n".join(f"{_MARKS[check.status]}  {check.name:{width}}  {check.evidence}" for check in checks)


def _sentence(verdict: str, target: ModelFacts, draft: ModelFacts) -> str:
    told = {"yes": "fits", "with-notes": "fits, with notes:", "no": "does not fit"}[verdict]
    return f"{draft.name} {told} {target.name}"
