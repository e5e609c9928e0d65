"""Logo files in an object store: a local folder, or s3:// by URL. Each file appears whole or not at all."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from obstore import delete_async, get_async, put_async
from obstore.exceptions import BaseError, NotFoundError
from obstore.store import LocalStore, ObjectStore, from_url

from payagg.application.ports import Unavailable

T = TypeVar("T")
CALL_SECONDS = 10.0


class ObjectLogos:
    """`place` is a folder (made when absent) or an object-store URL; nothing is contacted before the first call."""

    def __init__(self, place: str | Path) -> None:
        self._place = str(place)
        self._opened: ObjectStore | None = None

    async def put(self, path: str, content: bytes) -> None:
        await self._bounded(lambda store: put_async(store, path, content))

    async def get(self, path: str) -> bytes | None:
        return await self._bounded(lambda store: _read(store, path))

    async def delete(self, path: str) -> None:
        """Removing what is not there is fine."""
        await self._bounded(lambda store: delete_async(store, path))

    async def _bounded(self, call: Callable[[ObjectStore], Awaitable[T]]) -> T | None:
        """The call's result, None where there is no such file; raises Unavailable for everything else."""
        try:
            if self._opened is None:
                self._opened = _opened(self._place)
            async with asyncio.timeout(CALL_SECONDS):
                return await call(self._opened)
        except (NotFoundError, FileNotFoundError):
            return None
        except (BaseError, OSError) as error:
            # The store's own message may repeat a signed URL.
            raise Unavailable(f"the logo store failed: {type(error).__name__}") from None


async def _read(store: ObjectStore, path: str) -> bytes:
    return bytes(await (await get_async(store, path)).bytes_async())


def _opened(place: str) -> ObjectStore:
    if "://" in place and not place.startswith("file://"):
        return from_url(place, retry_config={"max_retries": 2, "retry_timeout": timedelta(seconds=CALL_SECONDS)})
    folder = Path(place.removeprefix("file://")).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    return LocalStore(folder)
