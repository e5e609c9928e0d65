"""The checker of linearizability explains what the product answers; lab/defects shows it ten kinds of other answers."""

from lab.linear.load import refused_without_faults


async def test_what_the_product_answers_without_faults_has_an_order() -> None:
    assert await refused_without_faults(100, seed=1, at_once=2) == []
