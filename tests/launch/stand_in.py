"""Stands in for an engine's server: takes its command line, answers /health and /metrics, fails in the way it is told.

STAND_IN_FAILS: port, refused, memory, dies, killed, never, later. STAND_IN_METRICS: the file that /metrics answers.
"""

import os
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

WORDS = {
    "port": "OSError: [Errno 98] error while attempting to bind on address ('127.0.0.1', 1): address already in use",
    "refused": "pydantic_core._pydantic_core.ValidationError: 1 validation error for SpeculativeConfig\n"
    "  Value error, num_speculative_tokens must be divisible",
    "memory": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "dies": "loading weights 40 %\nRuntimeError: weight layers.3.mlp is missing",
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = Path(os.environ["STAND_IN_METRICS"]).read_bytes() if self.path == "/metrics" else b"ok"
        self.send_response(503 if os.environ.get("STAND_IN_FAILS") == "never" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    fails = os.environ.get("STAND_IN_FAILS", "")
    print("stand-in:", *sys.argv[1:], flush=True)
    if fails in WORDS:
        print(WORDS[fails], flush=True)
        sys.exit(7)
    if fails == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    server = HTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Handler)
    signal.signal(signal.SIGTERM, lambda *_: ended(0))
    signal.signal(signal.SIGINT, lambda *_: ended(5))
    if fails == "later":
        server.handle_request()
        print("RuntimeError: worker 0 died", flush=True)
        sys.exit(9)
    server.serve_forever()


def ended(status: int) -> None:
    print("stand-in: ends", flush=True)
    if os.environ.get("STAND_IN_FAILS") == "stays":
        time.sleep(60)
    sys.exit(status)


if __name__ == "__main__":
    main()
