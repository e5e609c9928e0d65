"""A plot over days: bars by status, and the line of the days before, on one scale."""

from datetime import date, timedelta

from payagg.extensions.console.plot import BOTTOM, TOP, plot

FIRST = date(2025, 1, 30)
DAYS = [FIRST + timedelta(days=number) for number in range(3)]


def test_bars_are_stacked_and_the_highest_day_of_both_periods_fills_the_plot() -> None:
    values = [{"SUCCESS": 3, "FAILED": 1}, {"SUCCESS": 0, "FAILED": 0}, {"SUCCESS": 2, "FAILED": 0}]
    drawn = plot(list(zip(DAYS, values, strict=True)), [8, 0, 4])
    assert drawn["most"] == 8
    middle = (TOP + BOTTOM) / 2
    assert drawn["line"] == [(16.67, TOP), (50.0, BOTTOM), (83.33, middle)]
    paid, failed, last = drawn["bars"]
    assert (paid["y"] + paid["height"], failed["y"] + failed["height"], failed["y"]) == (BOTTOM, paid["y"], middle)
    assert (last["day"], last["status"], last["value"]) == (DAYS[2], "SUCCESS", 2)


def test_without_payments_before_there_is_no_line() -> None:
    drawn = plot([(DAYS[0], {"SUCCESS": 1})], [0])
    assert (drawn["line"], drawn["most"]) == ([], 1)
