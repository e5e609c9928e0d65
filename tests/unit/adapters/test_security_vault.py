"""Encryption at rest (reliability.md E7): bound to its place, readable after the key was rotated."""

import pytest

from payagg.adapters.security import AesVault

OLD = ("k1", b"1" * 32)
NEW = ("k2", b"2" * 32)


def test_a_ciphertext_swapped_to_another_gateway_does_not_open() -> None:
    vault = AesVault((OLD,))
    blob = vault.seal(b"secret", "gateway-1")
    assert vault.open(blob, "gateway-1") == b"secret"
    with pytest.raises(ValueError, match="does not open here"):
        vault.open(blob, "gateway-2")
    with pytest.raises(ValueError, match="does not open"):  # nor under the same kid with other bytes
        AesVault((("k1", b"9" * 32),)).open(blob, "gateway-1")


@pytest.mark.rule("gateways.13")
def test_the_first_key_seals_and_every_key_opens() -> None:
    before = AesVault((OLD,)).seal(b"secret", "g")
    rotated = AesVault((NEW, OLD))
    assert rotated.open(before, "g") == b"secret"
    after = rotated.seal(b"secret", "g")
    assert AesVault((NEW,)).open(after, "g") == b"secret"
    with pytest.raises(ValueError, match="not configured"):
        AesVault((OLD,)).open(after, "g")


def test_every_altered_byte_is_noticed() -> None:
    vault = AesVault((OLD,))
    blob = vault.seal(b"secret", "g")
    for at in range(len(blob)):
        for altered in (blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :], blob[:at]):
            with pytest.raises(ValueError):  # noqa: PT011 - which of the three it is depends on the byte
                vault.open(altered, "g")


def test_two_seals_of_one_plaintext_differ_and_do_not_show_it() -> None:
    vault = AesVault((OLD,))
    first, second = vault.seal(b"secret", "g"), vault.seal(b"secret", "g")
    assert first != second
    assert b"secret" not in first
    with pytest.raises(ValueError, match="no encryption key"):
        AesVault(()).seal(b"secret", "g")
