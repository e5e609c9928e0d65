"""What fuzzing begins with and what it found, without a fuzzer; and each target notices a parser that is wrong."""

from collections.abc import Callable
from typing import Any

import httptools
import msgspec
import pytest

from lab.parsers import bodies, texts
from lab.parsers.run import TARGETS
from lab.parsers.target import FuzzTarget
from payagg.adapters.providers.provider_a import webhook
from payagg.adapters.security import Tokens
from payagg.adapters.webhooks.http1 import HttpConnection
from payagg.domain.errors import ErrorCode, Refusal

CASES = [pytest.param(target, seed, id=f"{target.name} {seed[:24]!r}") for target in TARGETS for seed in target.seeds]


@pytest.mark.parametrize(("target", "seed"), CASES)
def test_a_seed_holds(target: FuzzTarget, seed: bytes) -> None:
    target.check(seed)


def _any_text(text: str, *_: Any) -> str:
    return text


def _lax(body: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(body, type=kind, strict=False)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise Refusal(ErrorCode.VALIDATION_ERROR) from None


def _in_two_reads(self: HttpConnection, data: bytes) -> None:
    """Forgets what came before, as a parser does that is made anew for each read."""
    self._parser = httptools.HttpResponseParser(self)
    try:
        self._parser.feed_data(data)
    except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
        self._end(error)


WRONG: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "reference": (texts, "parse_reference", _any_text),
    "url": (texts, "parse_url", _any_text),
    "search": (texts, "escape_like", _any_text),
    "token": (Tokens, "read", lambda _, text: {"sub": "x", "exp": 1}),
    "json": (bodies, "decode", _lax),
    "provider event": (webhook, "is_signed", lambda *_: True),
    "answer": (HttpConnection, "data_received", _in_two_reads),
    "receiver": (bodies, "VERIFIED", lambda *_: {}),
}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_wrong_parser_is_noticed_by_a_seed(target: FuzzTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*WRONG[target.name])

    def holds(seed: bytes) -> bool:
        try:
            target.check(seed)
        except (AssertionError, ValueError):
            return False
        return True

    assert not all(map(holds, target.seeds))
