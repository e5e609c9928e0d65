"""How many connections a serving process lets in, by what the system lets it open."""

import resource

import pytest

from payagg.entrypoints.process.http_server import FILES_KEPT, connections_max


@pytest.mark.parametrize(
    ("soft", "hard", "connections", "raised"),
    [(256, 4096, 4096 - FILES_KEPT, {(4096, 4096)}), (1024, 1024, 512, set())],
)
def test_the_soft_limit_is_raised_and_some_files_are_kept(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, connections: int, raised: set[tuple[int, int]]
) -> None:
    asked: set[tuple[int, int]] = set()
    monkeypatch.setattr(resource, "getrlimit", {resource.RLIMIT_NOFILE: (soft, hard)}.__getitem__)
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.add(limits))
    assert (connections_max(), asked) == (connections, raised)
