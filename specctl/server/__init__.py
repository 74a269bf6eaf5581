"""The OpenAI-compatible HTTP server over the bundled engine.

Belongs here: reading requests (`fields`, `protocol`), answering them (`answers`, `generation`, `http`), the thread
that owns the engine (`bridge`), what is counted (`metrics`), who may come in (`guard`), start and end of the process
(`life`).

Does not belong here: how tokens are made (runtime), which setting is right (rules), starting vLLM, SGLang or
TensorRT-LLM (launch), options and messages of the command (cli).

May enter: cli. This room imports from lower floors only, and from `bench`, `launch` and `cli` never. It loads fastapi,
uvicorn and, through the runtime, torch: import it inside the function that serves, not at the top of a module.
"""
