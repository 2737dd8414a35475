"""A web server that answers posts as it is told to, and keeps what it has taken."""

from __future__ import annotations

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Receiver:
    """`answer` gives the status of each answer; bodies that are answered with 2xx are in `taken`, with their keys.

    `authorized` has what each post said of who sends it.
    """

    def __init__(self, port: int, requests: list[str]) -> None:
        self.address = f"http://127.0.0.1:{port}/"
        self.answer: Callable[[], int] = lambda: 200
        self.requests = requests
        self.taken: list[tuple[str, dict[str, Any]]] = []
        self.authorized: list[str | None] = []


@contextmanager
def receiving() -> Iterator[Receiver]:
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            said = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status = receiver.answer()
            requests.append("POST")
            receiver.authorized.append(self.headers["Authorization"])
            if status < 300:
                receiver.taken.append((self.headers["Idempotency-Key"], strict(said)))
            self.send_response(status)
            self.send_header("Location", receiver.address + "elsewhere")
            self.end_headers()

        def do_GET(self) -> None:
            requests.append("GET")
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = Receiver(server.server_port, requests)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()


def strict(text: str) -> Any:
    """JSON as its standard has it, which Python takes more loosely."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)
