# ruff: noqa: SIM905 (a list of words reads better as one text)
"""TensorRT-LLM's other arguments: what may stand beside `speculative_config` at the root of the file."""

from __future__ import annotations

ROOT_KEYS = frozenset(
    (
        "allreduce_strategy alltoall_backend attention_dp_config attn_backend auto_deploy_config backend "
        "batch_wait_max_tokens_ratio batch_wait_timeout_iters batch_wait_timeout_ms batched_logits_processor "
        "build_config cache_transceiver_config calib_config checkpoint_format checkpoint_loader "
        "context_parallel_size context_servers cp_config cuda_graph_config decoding_config "
        "disable_flashinfer_sampling disable_overlap_scheduler disagg_cluster dtype dwdp_config "
        "enable_attention_dp enable_autotuner enable_build_cache enable_chunked_prefill "
        "enable_iter_perf_stats enable_iter_req_stats enable_layerwise_nvtx_marker enable_lora "
        "enable_lm_head_tp_in_adp enable_min_latency enable_prompt_adapter enable_sleep enable_tqdm "
        "encode_only env_overrides extended_runtime_perf_knob_config fail_fast_on_attention_window_too_large "
        "fast_build force_dynamic_quantization garbage_collection_gen0_threshold gather_generation_logits "
        "generation_servers gpus_per_node guided_decoding_backend hostname iter_stats_max_iterations "
        "kv_cache_compression_config kv_cache_config kv_connector_config layer_wise_benchmarks_config "
        "load_format lora_config max_batch_size max_beam_width max_input_len max_num_tokens "
        "max_prompt_adapter_token max_seq_len max_stats_len mm_encoder_only model model_kwargs "
        "moe_cluster_parallel_size moe_config moe_expert_parallel_size moe_tensor_parallel_size mpi_session "
        "multimodal_config normalize_log_probs num_instances num_postprocess_workers num_serve_frontends "
        "nvfp4_gemm_config orchestrator_type otlp_traces_endpoint parallel_config peft_cache_config "
        "perf_metrics_max_requests perf_metrics_output_dir pipeline_parallel_size port post_processor_hook "
        "postprocess_tokenizer_dir print_iter_log quant_config ray_placement_config ray_worker_extension_cls "
        "reasoning_parser request_stats_max_iterations return_perf_metrics revision "
        "sampler_force_async_worker sampler_type scheduler_config skip_tokenizer_init sparse_attention_config "
        "stream_interval telemetry_config tensor_parallel_size tokenizer tokenizer_mode tokenizer_revision "
        "torch_compile_config trust_remote_code video_pruning_rate workspace prefetch_stop_word_ids "
        "enable_energy_metrics gms_config"
    ).split()
)

# Backends by what they may be called; `tensorrt` and `trt` are one.
BACKENDS = {"pytorch": "pytorch", "tensorrt": "tensorrt", "trt": "tensorrt", "_autodeploy": "_autodeploy"}

# Which types run on which backend (1.2.1; the engine backend is gone in 1.4).
ENGINE_BACKEND = frozenset({"Eagle", "Medusa", "Lookahead"})
ENGINE_ONLY = frozenset({"Medusa", "Lookahead"})
