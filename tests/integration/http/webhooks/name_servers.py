"""Name servers on loopback that answer as their names say."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
from dns.rdatatype import A, to_text


@dataclass
class NameServer(asyncio.DatagramProtocol):
    """`silent...` gets no answer, `missing...` is no name, any other is this machine. `asked` has every question."""

    asked: list[tuple[str, str]] = field(default_factory=list)  # name and type
    delay: Callable[[str], float] = lambda _: 0.0
    port: int = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)  # uvloop has a class of its own
        self.port = transport.get_extra_info("sockname")[1]

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        query = dns.message.from_wire(data)
        [question] = query.question
        name = question.name.to_text(omit_final_dot=True)
        self.asked.append((name, to_text(question.rdtype)))
        if name.startswith("silent"):
            return
        answer = dns.message.make_response(query)
        answer.flags |= dns.flags.RA
        if name.startswith("missing"):
            answer.set_rcode(dns.rcode.NXDOMAIN)
        elif question.rdtype == A:
            answer.answer.append(dns.rrset.from_text(question.name, 60, "IN", "A", "127.0.0.1"))
        asyncio.get_running_loop().call_later(self.delay(name), self._transport.sendto, answer.to_wire(), address)


@asynccontextmanager
async def a_name_server(delay: Callable[[str], float] = lambda _: 0.0) -> AsyncIterator[NameServer]:
    transport, server = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: NameServer(delay=delay), local_addr=("127.0.0.1", 0)
    )
    try:
        yield server
    finally:
        transport.close()
