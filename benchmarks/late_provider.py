"""A Paystack that takes its time: accepts every charge after so many seconds, on loopback. `GET /` tells how many
callers wait now and how many waited at once at most. Bare, as Litestar under 500 connections would cost a core."""

import asyncio
import json
import re
import sys

import uvloop

LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)


class LateProvider:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.waiting = self.most = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            told = LENGTH.search(head)
            body = await reader.readexactly(int(told[1])) if told else b""
            answer = await self.charged(json.loads(body)["reference"]) if head.startswith(b"POST") else self.counts()
            content = json.dumps(answer).encode()
            lines = "HTTP/1.1 200 OK", "Content-Type: application/json", f"Content-Length: {len(content)}"
            writer.write("\r\n".join([*lines, "Connection: close", "", ""]).encode() + content)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # the caller gave up
        finally:
            writer.close()

    async def charged(self, reference: str) -> dict[str, object]:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.waiting -= 1
        page = {"authorization_url": "http://127.0.0.1/pay", "access_code": "a", "reference": reference}
        return {"status": True, "message": "Authorization URL created", "data": page}

    def counts(self) -> dict[str, object]:
        return {"waiting": self.waiting, "most": self.most}


async def main(port: int, seconds: float) -> None:
    server = await asyncio.start_server(LateProvider(seconds).serve, "127.0.0.1", port, backlog=1024)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(int(sys.argv[1]), float(sys.argv[2])))
