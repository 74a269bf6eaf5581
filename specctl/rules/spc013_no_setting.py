"""A file that was named holds no setting of speculation that specctl knows.

The dialect of a file is told by its keys: `decoding_type` inside `speculative_config` is TensorRT-LLM,
`speculative-config` without it or `spec-method` is vLLM, `speculative-algorithm` is SGLang, `specctl: 1` is specctl's
own. `--dialect` overrides this."""
