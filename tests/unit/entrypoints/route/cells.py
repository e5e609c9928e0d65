"""A cell as the router sees it."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import httpx

from payagg.entrypoints.route.upstream import Unreachable


@dataclass
class FakeCell:
    """Says `said` to every question, nobody being there where its status is 0; answers requests with the next of
    `answers`, with the last again and again. A frozen one takes what comes and says nothing."""

    said: tuple[int, str] = (404, "")
    answers: list[Any] = field(default_factory=list)
    is_frozen: bool = False
    was_let_go: bool = False
    asked: list[str] = field(default_factory=list)
    sent: list[bytes] = field(default_factory=list)

    async def ask(self, path: str) -> tuple[int, str]:
        self.asked.append(path)
        await self._thaw()
        if not self.said[0]:
            raise Unreachable("nobody there", was_sent=False)
        return self.said

    async def send(self, method: str, target: bytes, headers: Any, body: httpx.AsyncByteStream) -> httpx.Response:
        self.sent.append(b"".join([part async for part in body]))
        await self._thaw()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Unreachable):
            raise answer
        status, content, *cell = answer
        named = {"X-Payagg-Cell": cell[0]} if cell else {}
        return httpx.Response(status, headers=named, stream=httpx.ByteStream(content))

    async def _thaw(self) -> None:
        await asyncio.sleep(0)
        if not self.is_frozen:
            return
        try:
            await asyncio.Event().wait()
        finally:
            self.was_let_go = True
