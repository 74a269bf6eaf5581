"""Starting the real engines: vLLM, SGLang and TensorRT-LLM, with a setting in any spelling.

Belongs here: which release is installed (`installed`), the command line that an engine is started with (`engines`,
`command`), the process from start to end (`process`), why a start failed (`failure`), the acceptance that a running
engine tells (`acceptance`).

Does not belong here: what a setting means or whether it is right (dialects, rules), measuring (bench), options and
messages of the command (cli), anything that the engine itself does: parallelism over GPUs and nodes is its own.

May enter: cli. This room imports from lower floors only, never from `bench` and `server`, and no engine's package:
an engine lives in an interpreter of its own.
"""
