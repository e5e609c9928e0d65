"""Files in an object store: a local folder, or s3:// by URL. Each file appears whole or not at all. The library is
loaded at the first call: it takes 4 MiB and few processes need it."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from payagg.application.ports.outside import Unavailable

if TYPE_CHECKING:
    from obstore.store import ObjectStore

T = TypeVar("T")
CALL_SECONDS = 10.0
AT_ONCE = 8


class ObjectLogos:
    """`place` is a folder (made when absent) or an object-store URL; nothing is contacted before the first call."""

    name = "logo store"
    call_seconds = CALL_SECONDS
    fault = Unavailable

    def __init__(self, place: str | Path) -> None:
        self._place = str(place)
        self._opened: ObjectStore | None = None
        # Threads of our own: the library's async operations end on its threads, and one that returns to Python while
        # the process ends aborts it (PyO3/pyo3-async-runtimes issue 40). Not the loop's threads, which resolve names: a
        # store that hangs must not block look-ups for providers.
        self._threads = ThreadPoolExecutor(AT_ONCE, "object-store")

    async def put(self, path: str, content: bytes) -> None:
        await self._call_bounded(lambda store: store.put(path, content))

    async def get(self, path: str) -> bytes | None:
        return await self._call_bounded(lambda store: bytes(store.get(path).bytes()))

    async def delete(self, path: str) -> None:
        """A missing file is no error."""
        await self._call_bounded(lambda store: store.delete(path))

    async def _call_bounded(self, call: Callable[["ObjectStore"], T]) -> T | None:
        """The call's result, None for a missing file; raises Unavailable for every other error."""
        from obstore.exceptions import BaseError, NotFoundError

        try:
            if self._opened is None:
                self._opened = _open_store(self._place)
            async with asyncio.timeout(self.call_seconds):
                return await asyncio.get_running_loop().run_in_executor(self._threads, call, self._opened)
        except (NotFoundError, FileNotFoundError):
            return None
        except (BaseError, OSError) as error:
            # The store's message may contain a signed URL.
            raise self.fault(f"the {self.name} failed: {type(error).__name__}") from None


def _open_store(place: str) -> "ObjectStore":
    from obstore.store import LocalStore, from_url

    if "://" in place and not place.startswith("file://"):
        return from_url(place, retry_config={"max_retries": 2, "retry_timeout": timedelta(seconds=CALL_SECONDS)})
    folder = Path(place.removeprefix("file://")).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    return LocalStore(folder)
