"""One crash of each kind, as the laboratory's part `crashes` tries all of them; and what its judge sees."""

from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest

from lab.crashes.child import KEY, CrashKind
from lab.crashes.run import LABELS, a_scene, tried
from lab.kit.judgement import wrongs
from lab.kit.places import Databases, databases

OF_LABEL = {label.name: label for label in LABELS}


@pytest.fixture(scope="module")
def made() -> Iterator[Databases]:
    with databases("crashes") as made:
        yield made


@pytest.mark.error_lines("the embedded Postgres ended; starting it again", optional=True)
@pytest.mark.parametrize(
    ("label", "kind"),
    [
        *(("P4", CrashKind.PROCESS), ("W3", CrashKind.POSTGRES), ("J3", CrashKind.CONNECTION)),
        *((label, CrashKind.PROCESS) for label in ("P5", "W3", "W4", "O1", "O3", "J1", "J2")),
    ],
)
async def test_nothing_is_lost_or_done_twice(made: Databases, label: str, kind: CrashKind) -> None:
    assert (await tried(made, OF_LABEL[label], kind)).wrong == []


async def test_the_judge_sees_each_kind_of_loss(made: Databases) -> None:
    with made.fresh() as (url, folder):
        async with a_scene(url, folder, OF_LABEL["V1"], CrashKind.PROCESS) as scene:
            await scene.prepare()
            await scene.recover()
            told, book, merchant = scene.buyer.acknowledged, scene.book, scene.merchant

            def judged() -> str:
                return "\n".join(wrongs(url, [scene.buyer], {"provider_a": book}, merchant, is_quiet=True))

            assert judged() == ""
            purchase = told[KEY]
            for change, wrong in (
                ({"reference": "PAY-20250101-AAAAAA"}, "INV8"),
                ({"amount": 1}, "INV5"),
                ({"is_paid": False}, "INV1: paid 1 times"),
                ({"sent_to": ""}, "INV1: 1 hand-offs to"),
                ({"sent_to": ""}, "INV3"),
            ):
                told[KEY] = replace(purchase, **change)
                assert wrong in judged()
            told[KEY] = purchase
            book.charges[purchase.reference].opened = 2
            assert "INV1: one reference charged twice" in judged()
            scene.buyer.asked.clear()
            assert "nobody asked for it" in judged()
            first, *others = merchant.received
            merchant.received.append(replace(first, body=first.body.replace(b"150000", b"150001")))
            assert "INV4: one event id, two bodies" in judged()
            merchant.received[:] = others
            assert "INV4: told of" in judged()
            with psycopg.connect(url) as connection:
                connection.execute("UPDATE deliveries SET status = 'PENDING', next_attempt_at = now()")
            assert "INV7: a delivery is left" in judged()
