"""How many connections a serving process lets in, by what the system lets it open."""

import resource

import pytest

from payagg.adapters.webhooks.sender import KEPT_MAX
from payagg.application.webhooks.dispatcher import CONCURRENT
from payagg.entrypoints.process.http_server import FILES_KEPT, connections_max


def test_the_soft_limit_is_raised_and_some_files_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
    for limits, connections in (((1024, 1024), 512), ((256, 4096), 4096 - FILES_KEPT)):
        monkeypatch.setattr(resource, "getrlimit", {resource.RLIMIT_NOFILE: limits}.__getitem__)
        assert connections_max() == connections
    assert asked == [(4096, 4096)]


def test_what_is_kept_is_enough_for_a_look_up_of_each_delivery_and_all_idle_connections() -> None:
    """Each look-up asks for both families of addresses, from a socket each."""
    assert FILES_KEPT >= 2 * CONCURRENT + KEPT_MAX + 100
