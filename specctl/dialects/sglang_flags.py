# ruff: noqa: SIM905 (a list of words reads better as one text)
"""The names of SGLang's other flags by the number of their values: they tell a typo from what is another's business.

Facts of SGLang 0.5.22; flags of speculation stand in the rows.
"""

SGLANG_SWITCHES = """
abort-on-priority-when-disabled allow-auto-truncate checkpoint-engine-wait-weights-before-ready
constrained-json-disable-any-whitespace dcp-replicate-q-proj debug-cuda-graph delete-ckpt-after-loading
disable-aiter-allreduce-fusion-in-decode disable-aiter-allreduce-fusion-in-prefill disable-attn-tp-gather
disable-chunked-prefix-cache disable-cuda-graph disable-cuda-graph-padding disable-custom-all-reduce
disable-decode-cuda-graph disable-fast-image-processor disable-flashinfer-autotune
disable-flashinfer-cutlass-moe-fp4-allgather disable-hybrid-swa-memory disable-outlines-disk-cache
disable-overlap-schedule disable-prefill-cuda-graph disable-priority-preemption disable-radix-cache
disable-shared-experts-fusion disable-tokenizer-batch-decode disaggregation-decode-enable-offload-kvcache
disaggregation-decode-enable-radix-cache disaggregation-enable-kv-checksum dllm-fdfo
enable-adaptive-dispatch-to-encoder enable-aiter-allreduce-fusion enable-attn-tp-input-scattered
enable-broadcast-mm-inputs-process enable-cache-report enable-cp-decode-attn-tp enable-cudagraph-gc
enable-custom-logit-processor enable-decoder-swa-bounded-replay enable-deepseek-v4-fp4-indexer
enable-dense-mlp-attn-tp enable-deterministic-inference enable-dp-attention
enable-dp-attention-local-control-broadcast enable-dp-lm-head enable-draft-weights-cpu-backup
enable-dsa-cache-layer-split enable-dsa-fused-indexer enable-dynamic-batch-tokenizer enable-dynamic-chunking
enable-elastic-expert-backup enable-encoder-swa-bounded-replay enable-eplb enable-flashinfer-allreduce-fusion
enable-flexkv enable-forward-pass-metrics enable-fp32-lm-head enable-fused-moe-sum-all-reduce
enable-fused-qk-norm-rope enable-hierarchical-cache enable-hisparse enable-http2 enable-int8-mamba-checkpoint
enable-kv-cache-sharding enable-layernorm-sp enable-layerwise-nvtx-marker enable-lean-attention
enable-linear-replayssm enable-linear-replayssm-spec enable-linker-mla-dedup enable-lmcache enable-lora
enable-lora-overlap-loading enable-mamba-cache-stochastic-rounding enable-memory-saver enable-metrics
enable-metrics-for-all-schedulers enable-mfu-metrics enable-mis enable-mixed-chunk enable-mm-global-cache
enable-mscclpp enable-multimodal enable-nccl-nvls enable-p2p-check enable-page-major-kv-layout enable-pd-role-switch
enable-pdmux enable-precise-embedding-interpolation enable-prefill-cp enable-prefill-delayer enable-prefix-mm-cache
enable-priority-scheduling enable-profile-cuda-graph enable-quant-communications enable-request-time-stats-logging
enable-response-store enable-return-hidden-states enable-return-indexer-topk enable-return-routed-experts
enable-scattered-sconv enable-session-radix-cache enable-shared-experts-attn-tp enable-single-batch-overlap
enable-ssl-refresh enable-streaming-session enable-strict-thinking enable-symm-mem enable-tf32-matmul
enable-tokenizer-batch-encode enable-torch-compile enable-torch-compile-debug-mode enable-torch-symm-mem
enable-tp-lm-head-all-to-all enable-trace enable-two-batch-overlap enable-unified-cache-external-linker
enable-unified-memory enable-w4a4-mxfp4-megamoe enable-waterfill enable-watermark enable-weights-cpu-backup
encoder-only enforce-disable-flashinfer-allreduce-fusion enforce-shared-experts-fusion experts-shared-outer-loras
export-metrics-to-file flashinfer-mla-disable-ragged grpc-mode incremental-streaming-output is-embedding
language-model-only language-only log-requests lora-strict-loading lora-use-virtual-experts mlx-enable-sampling
mm-enable-dp-encoder no-dcp-replicate-q-proj no-dllm-fdfo no-enable-dsa-fused-indexer no-enable-tp-lm-head-all-to-all
no-experts-shared-outer-loras no-lora-strict-loading no-ple-offload-embedding ple-offload-embedding pre-warm-nccl
prefill-only-disable-kv-cache quantize-and-serve remote-instance-weight-loader-start-seed-via-transfer-engine
return-input-ids return-output-ids schedule-low-priority-values-first show-time-cost skip-server-warmup
skip-tokenizer-init sleep-on-idle smg-grpc-mode stream-response-default-include-usage strip-thinking-cache
triton-attention-reduce-in-fp32 trust-mm-content-hashes trust-remote-code trust-request-chat-template use-ray
weight-loader-disable-mmap weight-loader-drop-cache-after-load weight-loader-prefetch-checkpoints
""".split()

SGLANG_INTS = """
asr-max-buffer-seconds asr-max-concurrent-sessions attention-context-parallel-size attention-data-parallel-size
attn-cp-size attn-dp-size base-gpu-id batch-notify-size c128-page-size chunked-prefill-size
constrained-json-max-whitespace-cnt cpu-offload-gb cuda-graph-max-bs-decode cuda-graph-max-bs-prefill
cuda-graph-max-seq-len-prefill data-parallel-size dcp-size decode-context-parallel-size decode-log-interval
default-priority-value detokenizer-worker-num disaggregation-bootstrap-port disaggregation-decode-extra-slots
disaggregation-decode-polling-interval dist-timeout dp-size dsa-triton-union dwdp-size
dynamic-batch-tokenizer-batch-size elastic-ep-initial-size elastic-ep-join-rank-offset encoder-bootstrap-port
engine-info-bootstrap-port ep ep-num-redundant-experts ep-size eplb-rebalance-layers-per-chunk
eplb-rebalance-num-iterations expert-distribution-recorder-buffer-size expert-parallel-size gated-launch-port
gpu-id-step grpc-http-sidecar-port grpc-port grpc-response-timeout-secs hicache-size
hicache-storage-prefetch-retry-max-attempts hicache-storage-prefetch-retry-poll-interval
http2-initial-connection-window-size http2-max-concurrent-streams int8-mamba-ckpt-size kt-cpuinfer
kt-max-deferred-experts-per-token kt-num-gpu-experts kt-threadpool-count kv-canary-sweep-interval
linear-replayssm-cache-len load-snapshot-publish-interval log-requests-level mamba-cache-philox-rounds
mamba-max-states-per-path mamba-track-interval max-ep-size max-loaded-loras max-lora-chunk-size max-lora-rank
max-loras-per-batch max-mamba-cache-size max-queued-requests max-running-requests media-url-max-file-size-mb
min-free-slots-delay mm-io-worker-num mm-preprocess-cache-size-mb mm-processor-worker-num moe-data-parallel-size
moe-dense-tp-size moe-dp-size nccl-port nnodes node-rank num-continuous-decode-steps num-reserved-decode-tokens
offload-group-size offload-num-in-group offload-prefetch-step optimistic-prefill-attempts page-size
pipeline-parallel-size port pp-async-batch-depth pp-max-micro-batch-size pp-size prefill-decode-interval
prefill-delayer-max-delay-passes prefill-max-requests priority-scheduling-preemption-threshold random-seed
remote-instance-weight-loader-seed-instance-service-port sampling-mask-max-tokens scheduler-recv-interval
shared-experts-tp-size sm-group-num smg-http-sidecar-port stream-interval swa-prefix-tails tensor-parallel-size
tokenizer-worker-num torch-compile-max-bs tp-size triton-attention-num-kv-splits triton-attention-split-tile-size
weight-cache-timeout weight-loader-prefetch-num-threads
""".split()

SGLANG_FLOATS = """
disaggregation-decode-host-receive-threshold dynamic-batch-tokenizer-batch-timeout elastic-ep-scale-timeout
eplb-min-rebalancing-utilization-threshold gc-warning-threshold-secs hicache-host-memory-fraction hicache-ratio
lora-drain-wait-threshold mamba-full-memory-ratio mem-fraction-static prefill-delayer-max-delay-ms
prefill-delayer-queue-min-ratio prefill-delayer-token-usage-low-watermark schedule-conservativeness
soft-watchdog-timeout swa-full-tokens-ratio tbo-token-distribution-threshold watchdog-timeout
""".split()

SGLANG_VALUES = """
admin-api-key api-key attention-backend bf16-gemm-backend boundary-reduction chat-template completion-template config
constrained-json-whitespace-pattern context-bucket context-length cp-strategy crash-dump-folder
cuda-graph-backend-decode cuda-graph-backend-prefill cuda-graph-config cuda-graph-prefill-max-context dcp-comm-backend
debug-tensor-dump-input-file debug-tensor-dump-output-folder decode-attention-backend decrypted-config-file
decrypted-draft-config-file deepep-config deepep-dispatcher-output-dtype deepep-mode deepep-v2-mode
default-chat-template-kwargs device disaggregation-decode-allocation-policy disaggregation-decode-retraction-backup
disaggregation-ib-device disaggregation-mode disaggregation-transfer-backend dist-init-addr dllm-algorithm
dllm-algorithm-config download-dir dsa-decode-backend dsa-paged-mqa-logits-backend dsa-prefill-backend
dsa-topk-backend dsv4-attn-backend dsv4-prefill-backend dtype elastic-ep-backend elastic-ep-join-mode
encoder-transfer-backend ep-dispatch-algorithm eplb-algorithm expert-balancedness-report-mode
expert-distribution-recorder-mode export-metrics-to-file-dir extra-metric-labels fastapi-root-path file-storage-path
flashinfer-a2a-dispatch-type flashinfer-allreduce-fusion-backend flashinfer-mxfp4-moe-precision flexkv-config-file
forward-hooks forward-pass-metrics-ipc-name forward-pass-metrics-worker-id fp4-gemm-backend fp8-gemm-backend
fuseep-mode grammar-backend hf-chat-template-name hicache-host-memory-mode hicache-io-backend hicache-mem-layout
hicache-storage-backend hicache-storage-backend-extra-config hicache-storage-prefetch-policy hicache-write-policy
hierarchical-sparse-attention-extra-config hisparse-config host image-processor-backend init-expert-location
json-model-override-args kt-method kt-weight-path kv-cache-dtype kv-canary kv-canary-real-data kv-events-config
limit-mm-data-per-request linear-attn-backend linear-attn-decode-backend linear-attn-prefill-backend
linear-attn-verify-backend lmcache-config-file load-balance-method load-format load-publish-endpoint log-level
log-level-http log-requests-format lora-backend lora-eviction-policy mamba-backend mamba-radix-cache-strategy
mamba-ssm-dtype max-prefill-tokens max-total-tokens mm-attention-backend mm-feature-transport mm-global-cache-backend
mm-process-config model model-config-parser model-impl model-loader-extra-config model-path modelexpress-config
modelopt-checkpoint-restore-path modelopt-checkpoint-save-path modelopt-export-path modelopt-quant moe-a2a-backend
moe-runner-backend mooncake-ib-device msprobe-dump-config nccl-init-addr offload-mode otlp-service-name
otlp-traces-endpoint pdmux-config-path ple-offload-backend ple-offload-dir preferred-sampling-params
prefill-attention-backend prefill-kv-cache-dequant-dtype qsa-indexer-dtype quantization quantization-param-path
radix-cache-backend radix-eviction-policy radix-eviction-policy-config reasoning-parser
remote-instance-weight-loader-backend remote-instance-weight-loader-seed-instance-ip
remote-instance-weight-loader-send-weights-group-ports retraction-policy return-hidden-states-mode revision
rl-on-policy-target rl-quant-profile sampling-backend sampling-defaults schedule-policy served-model-name sidecar
sidecar-args ssl-ca-certs ssl-certfile ssl-keyfile ssl-keyfile-password startup-weight-load-mode tokenizer-backend
tokenizer-metrics-custom-labels-header tokenizer-mode tokenizer-path tool-call-parser tool-server trace-modules
unified-cache-external-linker-backend warmups watermark-config weight-cache-mode weight-cache-socket weight-version
""".split()

SGLANG_LISTS = """
allowed-media-domains bucket-e2e-request-latency bucket-inter-token-latency bucket-time-to-first-token
cuda-graph-bs-decode cuda-graph-bs-prefill custom-weight-loader debug-tensor-dump-layers encoder-register-urls
encoder-urls flashinfer-autotune-skip-ops gc-threshold generation-tokens-buckets log-requests-target lora-paths
lora-target-modules model-checksum numa-node prefill-delayer-forward-passes-buckets
prefill-delayer-wait-seconds-buckets prompt-tokens-buckets tokenizer-metrics-allowed-custom-labels
uvicorn-access-log-exclude-prefixes
""".split()

SGLANG_WORDS = {
    "dtype": "auto bfloat16 float float16 float32 half".split(),
    "quantization": (
        "auto-round auto-round-int8 awq awq_marlin bitsandbytes compressed-tensors fp8 gguf gptq "
        "gptq_marlin humming mlx_q4 mlx_q8 modelopt modelopt_fp4 modelopt_fp8 modelopt_mixed modelslim "
        "moe_wna16 mxfp4 mxfp8 mxfp_w4a8 nvfp4_online petit_nvfp4 quark quark_int4fp8_moe quark_mxfp4 "
        "unquant w4afp8 w8a8_fp8 w8a8_int8"
    ).split(),
    "load-format": (
        "auto bitsandbytes dummy expert_pack fastsafetensors flash_rl gguf instanttensor layered mistral "
        "npcache presharded private pt remote remote_instance runai_streamer safetensors sharded_state"
    ).split(),
    "kv-cache-dtype": "auto bf16 bfloat16 fp4_mx_block16 fp8_e4m3 fp8_e5m2 mxfp8 nvfp4".split(),
    "moe-a2a-backend": (
        "ascend_fuseep ascend_tp deepep deepep_v2 flashinfer flashinfer_megamoe megamoe mooncake mori nixl none pplx"
    ).split(),
    "moe-runner-backend": (
        "aiter auto cutlass deep_gemm experimental_sgl_marlin experimental_sgl_trtllm flashinfer_cutedsl "
        "flashinfer_cutlass flashinfer_megamoe flashinfer_mxfp4 flashinfer_trtllm "
        "flashinfer_trtllm_routed hpc_ops humming intel_xpu marlin megamoe triton triton_kernel"
    ).split(),
    "disaggregation-mode": "decode null prefill".split(),
    "schedule-policy": "dfs-weight fcfs hrrn lof lpm priority random routing-key shortest-prefill-first".split(),
    "grammar-backend": "llguidance none outlines xgrammar".split(),
    "tokenizer-mode": "auto slow".split(),
    "tokenizer-backend": "huggingface fastokens".split(),
    "retraction-policy": "length priority".split(),
    "radix-eviction-policy": "lru lfu slru priority tlru".split(),
    "load-balance-method": "auto round_robin follow_bootstrap_room total_requests total_tokens".split(),
    "dcp-comm-backend": "ag_rs a2a fi_a2a".split(),
    "cp-strategy": "zigzag interleave".split(),
    "sampling-defaults": "openai model".split(),
    "log-requests-level": "0 1 2 3".split(),
    "log-requests-format": "text json".split(),
    "mm-attention-backend": (
        "sdpa fa3 fa4 triton_attn ascend_attn aiter_attn flashinfer_cudnn amx_attn xpu_attn".split()
    ),
    "fp8-gemm-backend": (
        "auto deep_gemm flashinfer_trtllm flashinfer_cutlass flashinfer_deepgemm flashinfer_cutedsl cutlass "
        "triton aiter"
    ).split(),
    "fp4-gemm-backend": "auto flashinfer_cudnn flashinfer_cutedsl flashinfer_cutlass flashinfer_trtllm marlin".split(),
    "bf16-gemm-backend": "auto cutedsl gemv torch".split(),
    "dsa-prefill-backend": (
        "flashmla_sparse flashmla_sparse_q8 flashmla_kv flashmla_auto flashinfer_sparse_mla triton_sparse_mla "
        "fa3 tilelang triton aiter trtllm intel_xpu"
    ).split(),
    "dsv4-prefill-backend": "auto flashmla_sparse flashmla_sparse_q8".split(),
    "dsa-decode-backend": (
        "flashmla_sparse flashmla_sparse_q8 flashmla_kv flashmla_auto flashinfer_sparse_mla fa3 tilelang "
        "triton aiter trtllm intel_xpu"
    ).split(),
    "dsa-paged-mqa-logits-backend": "auto deepgemm cutedsl aiter".split(),
    "dsa-topk-backend": "sgl-kernel torch flashinfer".split(),
    "mamba-backend": "triton flashinfer".split(),
    "cuda-graph-backend-decode": "full breakable disabled".split(),
    "cuda-graph-backend-prefill": "full breakable disabled".split(),
    "boundary-reduction": "auto ar rs rsv rs+rsv".split(),
    "flashinfer-allreduce-fusion-backend": "auto trtllm mnnvl cutedsl".split(),
    "deepep-v2-mode": "direct hybrid".split(),
    "flashinfer-mxfp4-moe-precision": "default bf16 fp8".split(),
    "deepep-mode": "auto normal low_latency".split(),
    "fuseep-mode": "1 2".split(),
    "deepep-dispatcher-output-dtype": "auto bf16 fp8 int8 nvfp4".split(),
    "ep-dispatch-algorithm": "static dynamic fake lp".split(),
    "expert-distribution-recorder-mode": "stat stat_approx per_pass per_token".split(),
    "expert-balancedness-report-mode": "off server_log prometheus both".split(),
    "elastic-ep-backend": "none mooncake nixl".split(),
    "elastic-ep-join-mode": "scale recover".split(),
    "mamba-ssm-dtype": "float32 bfloat16 float16".split(),
    "mamba-radix-cache-strategy": "auto no_buffer extra_buffer extra_buffer_lazy".split(),
    "linear-attn-backend": "triton cutedsl flashinfer flashkda nvidia_kda ptx_kda helion intel_xpu".split(),
    "linear-attn-decode-backend": "triton cutedsl flashinfer flashkda nvidia_kda ptx_kda helion intel_xpu".split(),
    "linear-attn-prefill-backend": "triton cutedsl flashinfer flashkda nvidia_kda ptx_kda helion intel_xpu".split(),
    "linear-attn-verify-backend": (
        "triton cutedsl flashinfer flashkda nvidia_kda ptx_kda helion intel_xpu nv_cutedsl"
    ).split(),
    "hicache-host-memory-mode": "cache buffer_only".split(),
    "hicache-write-policy": "write_back write_through write_through_selective".split(),
    "hicache-io-backend": "direct kernel kernel_ascend".split(),
    "hicache-mem-layout": "layer_first page_first page_first_direct page_first_kv_split page_head".split(),
    "hicache-storage-backend": (
        "file sim mooncake npu_memcache hf3fs nixl aibrix dynamic eic simm mori shm tensorcast seaweedfs"
    ).split(),
    "hicache-storage-prefetch-policy": "best_effort wait_complete timeout".split(),
    "unified-cache-external-linker-backend": "mooncake mori".split(),
    "image-processor-backend": "auto torchvision pil".split(),
    "mm-global-cache-backend": "mooncake".split(),
    "mm-feature-transport": "cpu cuda_ipc cuda_vmm".split(),
    "lora-eviction-policy": "lru fifo".split(),
    "lora-backend": "triton csgmv ascend torch_native".split(),
    "max-lora-chunk-size": "16 32 64 128".split(),
    "disaggregation-transfer-backend": "mooncake nixl ascend fake mori mooncake_tcp".split(),
    "disaggregation-decode-retraction-backup": "cpu_tensor host_pool none".split(),
    "encoder-transfer-backend": "auto zmq_to_scheduler zmq_to_tokenizer mooncake".split(),
    "startup-weight-load-mode": "serial overlap".split(),
    "remote-instance-weight-loader-backend": "transfer_engine nccl modelexpress".split(),
    "rl-on-policy-target": "fsdp".split(),
    "kv-canary": "none log raise".split(),
    "return-hidden-states-mode": "last full".split(),
    "weight-cache-mode": "off daemon client".split(),
    "ple-offload-backend": "pinned file".split(),
    "flashinfer-a2a-dispatch-type": "auto bf16 nvfp4 mxfp8".split(),
    "prefill-kv-cache-dequant-dtype": "auto nvfp4 fp8_e4m3".split(),
    "dsv4-attn-backend": "auto flashmla trtllm".split(),
    "qsa-indexer-dtype": "auto bfloat16 fp8_e4m3".split(),
    "disaggregation-decode-allocation-policy": "early prefill_complete".split(),
    "dsa-triton-union": "0 2 4".split(),
    "sampling-backend": "intel_xpu ascend pytorch flashinfer".split(),
    "kv-canary-real-data": "none partial all".split(),
}
