"""A bare merchant: answers 200 to every POST on loopback and counts them; GET tells how many."""

import asyncio
import re
import sys

import uvloop

LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)


class CountingReceiver(asyncio.Protocol):
    count = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport, self.buffer = transport, b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while b"\r\n\r\n" in self.buffer:
            head, _, rest = self.buffer.partition(b"\r\n\r\n")
            told = LENGTH.search(head)
            length = int(told[1]) if told else 0
            if len(rest) < length:
                return
            self.buffer = rest[length:]
            CountingReceiver.count += not head.startswith(b"GET")
            body = b"%d" % CountingReceiver.count
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


async def main(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(CountingReceiver, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(int(sys.argv[1])))
