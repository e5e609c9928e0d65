from payagg.entrypoints.http.server.wire import fields_of


def test_a_field_that_came_twice_is_empty_so_that_neither_value_counts() -> None:
    sent = [(b"authorization", b"Bearer a"), (b"host", b"localhost"), (b"authorization", b"Bearer b")]
    assert fields_of(sent) == {b"authorization": b"", b"host": b"localhost"}
    assert fields_of(sent[:2]) == {b"authorization": b"Bearer a", b"host": b"localhost"}
