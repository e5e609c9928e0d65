"""Whether bytes are a PNG or JPEG that is safe to serve as sent.

The sender chooses how much work decoding is, so a separate process does it, `image_decoder`, killed at its time limit.
Only that process loads Pillow. A JPEG of 165 KB and 3,000 scans took 93 s, and a thread cannot be killed. Nothing is
encoded again: that decodes the same bytes first, and loses colour profiles.
"""

import asyncio
import json
import os
import sys

from payagg.domain.errors import invalid
from payagg.domain.gateway import LOGO_MAX_BYTES

DECODERS = 2  # at once
SECONDS = 10.0  # for one image, process start included
TOO_COSTLY = "The image takes too long to decode."


class PillowImages:
    def __init__(self, seconds: float = SECONDS) -> None:
        self._room = asyncio.Semaphore(DECODERS)
        self._seconds = seconds

    async def kind(self, content: bytes) -> str:
        """`png` or `jpg`; raises VALIDATION_ERROR on `file`."""
        if len(content) > LOGO_MAX_BYTES:
            raise invalid("file", "Must be at most 2 MB.")
        async with self._room:
            judged = await self._judge(content)
        if "flaw" in judged:
            raise invalid("file", judged["flaw"])
        return judged["kind"]

    async def _judge(self, content: bytes) -> dict[str, str]:
        # -P: no module is imported from the working folder.
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "payagg.adapters.image_decoder", str(self._seconds)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ},
        )
        try:
            async with asyncio.timeout(self._seconds):
                said, _ = await process.communicate(content)
        except TimeoutError:
            return {"flaw": TOO_COSTLY}
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        # A decoder that the kernel killed, for time or memory, prints nothing.
        return json.loads(said) if said else {"flaw": TOO_COSTLY}
