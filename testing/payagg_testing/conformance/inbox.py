"""A merchant's receiver for webhooks: it remembers every try, and answers with what it is told to."""

import threading
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

OK = 200


@dataclass(frozen=True)
class ReceivedTry:
    """One try as it arrived; header names in lower case."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    answered: int


class Inbox:
    """Many addresses below one `url`. `serve` makes it answer on loopback; a sender in this process may call `receive`
    instead."""

    def __init__(self, url: str = "") -> None:
        self.url = url
        self._received: defaultdict[str, list[ReceivedTry]] = defaultdict(list)
        self._answers: defaultdict[str, deque[int]] = defaultdict(deque)
        self._server: ThreadingHTTPServer | None = None

    @classmethod
    def serve(cls, host: str = "127.0.0.1", port: int = 0, url: str | None = None) -> "Inbox":
        """Answers in a thread of its own; `url` is what the service must call, where that is another address."""
        inbox = cls()
        inbox._server = ThreadingHTTPServer((host, port), _handler_of(inbox))
        inbox._server.daemon_threads = True
        inbox.url = url or f"http://{host}:{inbox._server.server_address[1]}"
        threading.Thread(target=inbox._server.serve_forever, daemon=True).start()
        return inbox

    def answer(self, path: str, *statuses: int) -> None:
        """The next tries at `path` are answered so, and those after them with 200."""
        self._answers[path].extend(statuses)

    def receive(self, url: str, headers: Mapping[str, str], body: bytes) -> int:
        path = urlsplit(url).path
        answers = self._answers[path]
        status = answers.popleft() if answers else OK
        lower = {name.lower(): value for name, value in headers.items()}
        self._received[path].append(ReceivedTry(path, lower, body, status))
        return status

    def deliveries_at(self, path: str) -> list[ReceivedTry]:
        return list(self._received[path])

    def close(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()


def _handler_of(inbox: Inbox) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            status = inbox.receive(self.path, dict(self.headers.items()), body)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing: what arrived is in the inbox."""

    return Handler
