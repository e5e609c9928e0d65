"""What the log tells of a fault of ours."""

from payagg.application.telemetry import trace_of


def test_a_trace_follows_causes_and_holds_no_message() -> None:
    try:
        try:
            raise ValueError("inner canary")
        except ValueError as inner:
            raise RuntimeError("outer canary") from inner
    except RuntimeError as error:
        trace = trace_of(error)
    assert [line for line in trace if not line.startswith(" ")] == ["RuntimeError", "ValueError"]
    assert "canary" not in "".join(trace)
