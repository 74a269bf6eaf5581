"""Door sign: the networks. A model turns a flat batch of tokens into logits and keeps its own kind of cache.

Here: the native decoder, the adapter for other architectures, how weights are found and loaded. Not here: sampling,
scheduling, anything that knows what a draft is. May enter: the engine and the proposers of `specctl.runtime`.
"""
