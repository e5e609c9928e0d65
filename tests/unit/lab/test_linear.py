"""The checker of linearizability explains good histories; lab/defects shows it ten kinds of others."""

from lab.linear.check import Operation
from lab.linear.load import refused_without_faults
from lab.linear.model import A, Order, Told

REFERENCE = "PAY-20260101-ABCDEF"


def a_good_order() -> Order:
    """Handed to a provider, paid and told; a second order is simulated."""
    shown = Told("200", "PENDING", A, REFERENCE, 10_001)
    paid = shown._replace(status="SUCCESS")
    initiated = Told("201", "INITIATED", "", REFERENCE, 10_001)
    calls = [
        Operation("initiate", 0, asked=None),
        Operation("initiate", 1, 2, told=initiated._replace(code="200")),
        Operation("read", 1.5, 3, told=initiated._replace(code="200")),
        Operation("process", 2, 5, (A, ""), Told("200", "PENDING", A, REFERENCE, 0, "https://pay.example/1")),
        Operation("process", 3, asked=("sandbox", "FAILED")),
        Operation("public", 4, 6, told=shown),
        Operation("report", 6, asked="SUCCESS"),
        Operation("verify", 6, 8, told=paid._replace(gateway="")),
        Operation("simulate", 7, 9, "FAILED", Told("PAYMENT_ALREADY_FINAL")),
        Operation("read", 9, 10, told=paid),
        Operation("stranger", 9, 10, told=Told("PAYMENT_NOT_FOUND")),
        Operation("initiate", 9, 10, told=Told("DUPLICATE_PAYMENT")),
        Operation("process", 9, 10, (A, ""), Told("PAYMENT_ALREADY_PROCESSED")),
    ]
    return Order("order 1", 10_001, calls)


def a_simulated_order() -> Order:
    told = Told("200", "SUCCESS", "", REFERENCE, 10_001)
    created = Operation("initiate", 0, 1, told=Told("201", "INITIATED", "", REFERENCE, 10_001))
    return Order("order 2", 10_001, [created, Operation("simulate", 2, 3, "SUCCESS", told)])


def test_good_histories_are_explained() -> None:
    assert [a_good_order().wrong(), a_simulated_order().wrong()] == [[], []]


async def test_what_the_product_answers_without_faults_has_an_order() -> None:
    assert await refused_without_faults(100, seed=1, at_once=2) == []
