"""What is counted against a client: its IPv4 address, or its /64 and its /48."""

from ipaddress import ip_network

import pytest

from payagg.entrypoints.http.server.client_address import SITE_TIMES, _parse, address_of, counted_as, parse_address
from payagg.entrypoints.http.server.connections import OpenConnections

PROXIES = (ip_network("127.0.0.0/8"), ip_network("10.0.0.0/8"))


@pytest.mark.rule("access.30")
@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        ([], "127.0.0.1"),
        (["198.51.100.7, 203.0.113.1, 10.1.1.1"], "203.0.113.1"),
        (["203.0.113.1, 198.51.100.7"], "198.51.100.7"),
        (["203.0.113.1", "2001:db8:1:2::1"], "2001:db8:1:2::1"),
        (["203.0.113.1, nonsense, 10.1.1.1"], "10.1.1.1"),
        (["10.1.1.1, 10.1.1.2"], "10.1.1.1"),
        # As some proxies write them, among them Azure's.
        (["203.0.113.1:61001"], "203.0.113.1"),
        (["[2001:db8::1]:61001, 10.1.1.1:80"], "2001:db8::1"),
        (["[2001:db8::1]"], "2001:db8::1"),
        (["203.0.113.1:61001:2"], "127.0.0.1"),
    ],
)
def test_behind_trusted_proxies_the_rightmost_other_address_counts(forwarded: list[str], client: str) -> None:
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    assert str(address_of("127.0.0.1", headers, PROXIES)) == client
    for peer, proxies in (("198.51.100.9", PROXIES), ("127.0.0.1", ())):
        assert str(address_of(peer, headers, proxies)) == peer


@pytest.mark.rule("limits.11")
@pytest.mark.parametrize(
    ("client", "names"),
    [
        ("192.0.2.1", ["192.0.2.1"]),
        ("::ffff:192.0.2.1", ["192.0.2.1"]),
        ("::ffff:c000:201", ["192.0.2.1"]),
        ("2001:db8:1:2:3::4", ["2001:db8:1:2::/64", "2001:db8:1::/48"]),
        ("2001:0DB8:1:2:ffff::", ["2001:db8:1:2::/64", "2001:db8:1::/48"]),
        ("fe80::1%eth0", ["fe80::/64", "fe80::/48"]),
        ("::1", ["::/64", "::/48"]),
        ("", ["unknown"]),
        ("a unix socket", ["unknown"]),
    ],
)
def test_an_ipv6_client_counts_by_its_64_and_its_48(client: str, names: list[str]) -> None:
    counted = counted_as(parse_address(client))
    assert [name for name, _ in counted] == names
    assert [times for _, times in counted] == [1, SITE_TIMES][: len(names)]


@pytest.mark.rule("limits.11")
def test_connections_count_ipv6_clients_by_their_64_and_48() -> None:
    state = OpenConnections(lambda _: "x")
    state.per_address = 2
    assert [state.admit(f"2001:db8:1:1::{n}") for n in range(3)] == [True, True, False]
    others = [f"2001:db8:1:{2 + n // 2}:{n}::1" for n in range(19)]
    assert [state.admit(peer) for peer in others] == [True] * 18 + [False]
    state.leave("2001:db8:1:1::1")
    assert [state.admit(peer) for peer in ("2001:db8:1:1:5::9", others[-1])] == [True, False]
    assert [state.admit(peer) for peer in ("::ffff:192.0.2.1", "192.0.2.1", "192.0.2.1")] == [True, True, False]
    state.proxies = (ip_network("192.0.2.0/24"),)
    assert state.admit("::ffff:192.0.2.1")
    for peer in (*others[:-1], "2001:db8:1:1::0", "2001:db8:1:1:5::9", *["192.0.2.1"] * 3):
        state.leave(peer)
    assert not state._by_address


def test_what_is_too_long_for_an_address_is_none_and_is_not_cached() -> None:
    """Others write X-Forwarded-For, and a cache of thousands of long texts would be hundreds of megabytes."""
    before = parse_address("203.0.113.7"), _parse.cache_info().currsize
    assert parse_address("fe80::1%" + "x" * 60_000) is None
    assert (parse_address("203.0.113.7"), _parse.cache_info().currsize) == before
