"""Which clients read their answers too slowly, decided from what is written, what is unread and the time."""

import asyncio
from typing import Any

from payagg.entrypoints.http.server.answer_transport import AnswerTransport

SECONDS, RATE = 15.0, 1000


class QueueOfBytes(asyncio.Transport):
    """A transport whose client reads when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.queued = 0

    def write(self, data: Any) -> None:
        self.queued += len(data)

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return self.queued

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        class Closed:
            def fileno(self) -> int:
                raise OSError

        return Closed()


def transport_of(queue: QueueOfBytes, unread: int) -> AnswerTransport:
    transport = AnswerTransport(queue, lambda: None)
    transport.write(b"x" * unread)
    return transport


def slow_at(answer: int, read_a_second: int, *, more: int = 0) -> int | None:
    """The second at which a client is found too slow that reads so much of an answer, asked each second of two minutes;
    each second the server writes `more`."""
    queue = QueueOfBytes()
    transport = transport_of(queue, answer)
    for now in range(120):
        if transport.is_too_slow(now, SECONDS, RATE):
            return now
        queue.queued -= min(queue.queued, read_a_second)
        if more:
            transport.write(b"x" * more)
    return None


def test_who_reads_less_than_the_rate_is_found_after_the_time_and_nobody_else() -> None:
    for slow in (0, 24, RATE - 1):
        assert slow_at(500_000, slow) == SECONDS
    for sound in (RATE, 10_000):
        assert slow_at(500_000, sound) is None
    assert slow_at(200, 24) is None  # at its end before the time is over
    assert slow_at(0, 0) is None
    # A client far away that asks once a second: each answer is unread when it is looked at, and read by the next time.
    assert slow_at(300, 300, more=300) is None


def test_a_fast_start_does_not_pay_for_a_stop() -> None:
    queue = QueueOfBytes()
    transport = transport_of(queue, 500_000)
    assert not transport.is_too_slow(0, SECONDS, RATE)
    queue.queued = 100_000
    assert not transport.is_too_slow(15, SECONDS, RATE)
    assert not transport.is_too_slow(29, SECONDS, RATE)
    assert transport.is_too_slow(30, SECONDS, RATE)
