# ruff: noqa: SIM905 (a list of words reads better as one text)
"""The names of vLLM's other flags by the number of their values: they tell a typo from what is another's business.

Facts of vLLM 0.31.0; flags of speculation stand in the rows.
"""

VLLM_SWITCHES = """
aggregate-engine-logging allow-credentials allow-deprecated-quantization async-scheduling cohere-is-reasoning-model
cudagraph-metrics data-parallel-external-lb data-parallel-hybrid-lb data-parallel-multi-port-external-lb
dcp-q-replicate disable-cascade-attn disable-chunked-mm-input disable-custom-all-reduce disable-fastapi-docs
disable-hybrid-kv-cache-manager disable-log-stats disable-nccl-for-dp-synchronization disable-sliding-window
disable-uvicorn-access-log enable-auto-tool-choice enable-batch-sharded-sampling enable-chunked-prefill
enable-cumem-allocator enable-dbo enable-elastic-ep enable-ep-weight-filter enable-eplb enable-expert-parallel
enable-fault-tolerance enable-flash-late-interaction enable-flashinfer-autotune enable-force-include-usage
enable-layerwise-nvtx-tracing enable-log-deltas enable-log-outputs enable-log-requests enable-logging-iteration-details
enable-lora enable-mamba-cache-stochastic-rounding enable-mamba-shared-prefix-checkpoint enable-mfu-metrics
enable-mixed-moe-lora-format enable-mm-embeds enable-moe-shared-loras enable-nccl-comm-suspend enable-offline-docs
enable-per-request-metrics enable-prefix-caching enable-prompt-embeds enable-prompt-tokens-details
enable-request-id-headers enable-return-routed-experts enable-scale-out enable-server-load-tracking enable-sleep-mode
enable-ssl-refresh enable-tokenizer-info-endpoint enable-tower-connector-lora enable-trace-replay enforce-eager
exclude-tools-when-tool-choice-none fail-on-environ-validation fully-sharded-loras grpc headless help
interleave-mm-strings jit-monitor-verbose kv-cache-metrics kv-sharing-fast-prefill language-model-only log-error-stack
long-prefill-token-threshold-adaptive mm-device-do-normalize mm-encoder-only numa-bind ray-workers-use-nsight
return-sampling-mask return-tokens-as-token-ids scheduler-reserve-full-isl skip-mm-profiling skip-tokenizer-init
specialize-active-lora swa-bounded-replay tokens-only trust-remote-code trust-request-chat-template
trust-request-mm-kwargs use-fp64-gumbel use-replayssm use-tqdm-on-load no-allow-credentials
no-allow-deprecated-quantization no-async-scheduling no-cohere-is-reasoning-model no-cudagraph-metrics
no-data-parallel-external-lb no-data-parallel-hybrid-lb no-dcp-q-replicate no-disable-cascade-attn
no-disable-chunked-mm-input no-disable-custom-all-reduce no-disable-fastapi-docs no-disable-hybrid-kv-cache-manager
no-disable-nccl-for-dp-synchronization no-disable-sliding-window no-disable-uvicorn-access-log
no-enable-auto-tool-choice no-enable-batch-sharded-sampling no-enable-chunked-prefill no-enable-cumem-allocator
no-enable-dbo no-enable-elastic-ep no-enable-ep-weight-filter no-enable-eplb no-enable-expert-parallel
no-enable-fault-tolerance no-enable-flash-late-interaction no-enable-flashinfer-autotune no-enable-force-include-usage
no-enable-layerwise-nvtx-tracing no-enable-log-deltas no-enable-log-outputs no-enable-log-requests
no-enable-logging-iteration-details no-enable-lora no-enable-mamba-cache-stochastic-rounding
no-enable-mamba-shared-prefix-checkpoint no-enable-mfu-metrics no-enable-mixed-moe-lora-format no-enable-mm-embeds
no-enable-moe-shared-loras no-enable-nccl-comm-suspend no-enable-offline-docs no-enable-per-request-metrics
no-enable-prefix-caching no-enable-prompt-embeds no-enable-prompt-tokens-details no-enable-request-id-headers
no-enable-return-routed-experts no-enable-scale-out no-enable-server-load-tracking no-enable-sleep-mode
no-enable-ssl-refresh no-enable-tokenizer-info-endpoint no-enable-tower-connector-lora no-enable-trace-replay
no-enforce-eager no-exclude-tools-when-tool-choice-none no-fail-on-environ-validation no-fully-sharded-loras
no-interleave-mm-strings no-jit-monitor-verbose no-kv-cache-metrics no-kv-sharing-fast-prefill no-language-model-only
no-log-error-stack no-long-prefill-token-threshold-adaptive no-mm-device-do-normalize no-mm-encoder-only no-numa-bind
no-ray-workers-use-nsight no-return-sampling-mask no-return-tokens-as-token-ids no-scheduler-reserve-full-isl
no-skip-mm-profiling no-skip-tokenizer-init no-specialize-active-lora no-swa-bounded-replay no-tokens-only
no-trust-remote-code no-trust-request-chat-template no-trust-request-mm-kwargs no-use-fp64-gumbel no-use-replayssm
no-use-tqdm-on-load
""".split()

VLLM_VALUES = """
additional-config all2all-backend allowed-headers allowed-local-media-path allowed-methods allowed-origins
anthropic-disabled-thinking-effort api-server-count attention-backend attention-config aux-output-config block-size
chat-template chat-template-content-format code-revision cohere-format compilation-config config config-format convert
cp-kv-cache-interleave-size cpu-distributed-timeout-seconds cpu-offload-gb data-parallel-address data-parallel-backend
data-parallel-rank data-parallel-rpc-port data-parallel-size data-parallel-size-local data-parallel-start-rank
data-parallel-supervisor-port dbo-decode-token-threshold dbo-prefill-token-threshold dcp-comm-backend
dcp-kv-cache-interleave-size decode-context-parallel-size default-chat-template-kwargs default-mm-loras device-ids
device-memory-utilization diffusion-config disable-access-log-for-endpoints distributed-executor-backend
distributed-timeout-seconds download-dir dp-supervisor-probe-failure-threshold dp-supervisor-probe-interval-s
dp-supervisor-probe-timeout-s dp-sync-interval dtype ec-manager-config ec-transfer-config elastic-ep-max-dp-size
engram-config eplb-config expert-placement-strategy fault-tolerance-config fingerprint-mode fingerprint-value
gdn-prefill-backend generation-config gpu-memory-utilization h11-max-header-count h11-max-incomplete-event-size
hf-config-path hf-overrides host io-processor-plugin ir-op-priority jit-monitor-mode kda-decode-backend
kda-prefill-backend kernel-config kv-cache-dtype kv-cache-memory-bytes kv-cache-metrics-sample kv-events-config
kv-offloading-backend kv-offloading-size kv-transfer-config limit-mm-per-prompt linear-backend load-format
log-config-file log-level logging-config logprobs-mode long-prefill-token-threshold lora-dtype mamba-backend
mamba-block-size mamba-cache-dtype mamba-cache-mode mamba-cache-philox-rounds mamba-ssm-cache-dtype mamba-ssu-algorithm
master-addr master-port max-cpu-loras max-cudagraph-capture-size max-log-len max-logprobs max-lora-cls-labels
max-lora-rank max-loras max-model-len max-num-active-seqs max-num-batched-tokens max-num-queued-reqs
max-num-queued-tokens max-num-scheduled-tokens max-num-seqs max-parallel-loading-workers media-io-kwargs middleware
mm-encoder-attn-backend mm-encoder-attn-dtype mm-encoder-fp8-scale-path mm-encoder-fp8-scale-save-margin
mm-encoder-fp8-scale-save-path mm-encoder-tp-mode mm-hasher-algorithm mm-ipc-gpu-memory-gb mm-processor-cache-gb
mm-processor-cache-type mm-processor-device mm-processor-kwargs mm-shm-cache-max-object-size-mb mm-tensor-ipc model
model-class-overrides model-impl model-loader-extra-config moe-backend nnodes node-rank num-gpu-blocks-override
offload-backend offload-group-size offload-num-in-group offload-prefetch-step optimization-level otlp-traces-endpoint
override-generation-config per-request-spec-decode-metrics performance-mode pipeline-parallel-size pooler-config port
prefill-context-parallel-size prefill-schedule-interval prefix-cache-retention-interval prefix-caching-hash-algo
prefix-match-unit profiler-config pt-load-map-location quantization quantization-config reasoning-config
reasoning-parser reasoning-parser-plugin renderer-num-workers replayssm-buffer-len response-role revision root-path
runner safetensors-load-strategy safetensors-prefetch-block-size safetensors-prefetch-num-threads scheduler-cls
scheduling-policy seed show-hidden-metrics-for-version shutdown-timeout sparse-indexer-topk-backend
sse-keep-alive-interval ssl-ca-certs ssl-cert-reqs ssl-certfile ssl-ciphers ssl-keyfile stream-interval
structured-outputs-config tensor-parallel-size tokenizer tokenizer-mode tokenizer-revision tool-call-parser
tool-parser-plugin tool-server tool-strict-level ubatch-size uds uvicorn-log-level video-pruning-method
video-pruning-rate watermark watermark-config weight-transfer-config worker-cls worker-extension-cls
""".split()

VLLM_OPTIONAL = ["hf-token"]

VLLM_LISTS = """
allowed-media-domains api-key collect-detailed-traces cpu-offload-params cudagraph-capture-sizes ignore-patterns
kv-cache-dtype-skip-layers logits-processors lora-modules lora-target-modules numa-bind-cpus numa-bind-nodes
offload-params served-model-name sleep-preserve-parameter-names
""".split()

VLLM_SHORT = {
    "-tp": "tensor-parallel-size",
    "-pp": "pipeline-parallel-size",
    "-dp": "data-parallel-size",
    "-dcp": "decode-context-parallel-size",
    "-pcp": "prefill-context-parallel-size",
    "-ep": "enable-expert-parallel",
    "-q": "quantization",
    "-n": "nnodes",
    "-r": "node-rank",
    "-cc": "compilation-config",
    "-ac": "attention-config",
    "-h": "help",
    "-asc": "api-server-count",
    "-dc": "diffusion-config",
    "-dpa": "data-parallel-address",
    "-dpb": "data-parallel-backend",
    "-dpe": "data-parallel-external-lb",
    "-dph": "data-parallel-hybrid-lb",
    "-dpl": "data-parallel-size-local",
    "-dpm": "data-parallel-multi-port-external-lb",
    "-dpn": "data-parallel-rank",
    "-dpp": "data-parallel-rpc-port",
    "-dpr": "data-parallel-start-rank",
}

VLLM_INTS = """
api-server-count block-size cp-kv-cache-interleave-size cpu-distributed-timeout-seconds data-parallel-rank
data-parallel-rpc-port data-parallel-size data-parallel-size-local data-parallel-start-rank
data-parallel-supervisor-port dbo-decode-token-threshold dbo-prefill-token-threshold dcp-kv-cache-interleave-size
decode-context-parallel-size distributed-timeout-seconds dp-supervisor-probe-failure-threshold dp-sync-interval
elastic-ep-max-dp-size h11-max-header-count h11-max-incomplete-event-size long-prefill-token-threshold mamba-block-size
mamba-cache-philox-rounds master-port max-cpu-loras max-cudagraph-capture-size max-log-len max-logprobs
max-lora-cls-labels max-loras max-num-active-seqs max-num-queued-reqs max-num-seqs max-parallel-loading-workers
mm-shm-cache-max-object-size-mb nnodes node-rank num-gpu-blocks-override offload-group-size offload-num-in-group
offload-prefetch-step pipeline-parallel-size port prefill-context-parallel-size prefill-schedule-interval
prefix-cache-retention-interval prefix-match-unit renderer-num-workers replayssm-buffer-len
safetensors-prefetch-num-threads seed shutdown-timeout sse-keep-alive-interval ssl-cert-reqs stream-interval
tensor-parallel-size ubatch-size
""".split()

VLLM_NUMBERS = """
cpu-offload-gb device-memory-utilization dp-supervisor-probe-interval-s dp-supervisor-probe-timeout-s
gpu-memory-utilization kv-cache-metrics-sample kv-offloading-size mm-encoder-fp8-scale-save-margin mm-ipc-gpu-memory-gb
mm-processor-cache-gb video-pruning-rate watermark
""".split()

VLLM_OR_NONE = frozenset(
    """
cpu-distributed-timeout-seconds distributed-timeout-seconds ec-transfer-config engram-config kv-cache-memory-bytes
kv-events-config kv-offloading-size kv-transfer-config mamba-block-size max-cpu-loras max-log-len
max-lora-cls-labels max-num-active-seqs max-num-queued-reqs max-num-queued-tokens max-num-scheduled-tokens
max-parallel-loading-workers num-gpu-blocks-override pooler-config prefix-cache-retention-interval
prefix-match-unit quantization-config reasoning-config video-pruning-rate weight-transfer-config
""".split()
)

VLLM_SIZES = """
max-model-len safetensors-prefetch-block-size kv-cache-memory-bytes max-num-batched-tokens max-num-scheduled-tokens
max-num-queued-tokens
""".split()

VLLM_OBJECTS = """
attention-config aux-output-config compilation-config ec-manager-config ec-transfer-config engram-config eplb-config
fault-tolerance-config ir-op-priority kernel-config kv-events-config kv-transfer-config logging-config pooler-config
profiler-config quantization-config reasoning-config structured-outputs-config weight-transfer-config
""".split()

VLLM_WORDS = {
    "chat-template-content-format": "auto openai string".split(),
    "tool-strict-level": "auto function parameter".split(),
    "anthropic-disabled-thinking-effort": "auto high low max medium none xhigh".split(),
    "fingerprint-mode": "custom full hash none".split(),
    "uvicorn-log-level": "critical debug error info trace warning".split(),
    "runner": "auto draft generate pooling".split(),
    "convert": "auto classify embed none".split(),
    "dtype": "auto bfloat16 float float16 float32 half".split(),
    "logprobs-mode": "processed_logits processed_logprobs raw_logits raw_logprobs".split(),
    "safetensors-load-strategy": "eager lazy prefetch torchao None".split(),
    "mamba-ssu-algorithm": "auto horizontal simple vertical None".split(),
    "dcp-comm-backend": "a2a ag_rs None".split(),
    "all2all-backend": (
        "allgather_reducescatter deepep_high_throughput deepep_low_latency deepep_v2 flashinfer_all2allv "
        "flashinfer_nvlink_one_sided flashinfer_nvlink_two_sided moonep mori_high_throughput mori_low_latency "
        "naive nixl_ep pplx"
    ).split(),
    "expert-placement-strategy": "linear round_robin".split(),
    "kv-cache-dtype": (
        "auto bfloat16 float16 fp8 fp8_ds_mla fp8_e4m3 fp8_e5m2 fp8_inc fp8_per_token_head "
        "int4_per_token_head int8_per_token_head nvfp4 nvfp4_4over6 nvfp4_ds_mla turboquant_3bit_nc "
        "turboquant_4bit_nc turboquant_k3v4_nc turboquant_k8v4"
    ).split(),
    "prefix-caching-hash-algo": "sha256 sha256_cbor xxhash xxhash_cbor".split(),
    "mamba-cache-dtype": "auto bfloat16 float16 float32".split(),
    "mamba-ssm-cache-dtype": "auto bfloat16 float16 float32".split(),
    "mamba-cache-mode": "align all none".split(),
    "kv-offloading-backend": "lmcache native".split(),
    "offload-backend": "auto prefetch uva".split(),
    "mm-processor-cache-type": "lru shm".split(),
    "mm-hasher-algorithm": "blake3 sha256 sha512".split(),
    "mm-encoder-tp-mode": "data weights".split(),
    "mm-encoder-attn-dtype": "fp8 None".split(),
    "video-pruning-method": "evs vidcom2".split(),
    "mm-tensor-ipc": "direct_rpc torch_shm".split(),
    "mm-processor-device": "auto cpu".split(),
    "max-lora-rank": "1 8 16 32 64 128 256 320 512".split(),
    "lora-dtype": "auto bfloat16 float16".split(),
    "per-request-spec-decode-metrics": "detailed none summary".split(),
    "jit-monitor-mode": "error warn".split(),
    "scheduling-policy": "fcfs priority".split(),
    "moe-backend": (
        "aiter aiter_triton_mxfp4_bf16 auto b12x batched_triton cutlass deep_gemm deep_gemm_mega_moe "
        "emulation flashinfer_b12x flashinfer_cutedsl flashinfer_cutlass flashinfer_moe_ep_mega_cutedsl "
        "flashinfer_moe_ep_mega_deep_gemm flashinfer_trtllm flydsl hpc humming marlin rdna3 triton "
        "triton_unfused"
    ).split(),
    "linear-backend": (
        "aiter auto b12x conch cutlass deep_gemm emulation exllama fbgemm flashinfer_b12x flashinfer_cudnn "
        "flashinfer_cutedsl flashinfer_cutlass flashinfer_trtllm humming machete marlin torch triton xpu "
        "xpu_woq"
    ).split(),
    "sparse-indexer-topk-backend": "auto cooperative deep_select flashinfer per_row persistent torch".split(),
    "performance-mode": "balanced interactivity throughput".split(),
    "gdn-prefill-backend": "flashinfer triton cutedsl".split(),
    "kda-prefill-backend": "auto triton flashkda flashinfer fused".split(),
    "kda-decode-backend": "auto native flashinfer triton".split(),
}

VLLM_FLAGS = (
    dict.fromkeys(VLLM_VALUES, "value")
    | dict.fromkeys(VLLM_OPTIONAL, "optional")
    | dict.fromkeys(VLLM_LISTS, "many")
    | dict.fromkeys(VLLM_SWITCHES, "switch")
)
