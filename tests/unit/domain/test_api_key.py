"""API keys: their forms, what is kept of them, when they are accepted."""

import hashlib
from typing import Any

import pytest
from payagg_testing.builders import NOW, a_business

from payagg.domain.api_key import ApiKey, ApiKeyStatus, parse_secret
from payagg.domain.business import BusinessStatus, KycStatus, Role, ensure_manager
from payagg.domain.errors import ErrorCode
from payagg.domain.values import Environment
from tests.support.refusals import refusal_of

SECRET_HEX, PUBLIC_HEX = "0123456789abcdef" * 3, "fedcba9876543210" * 2


@pytest.mark.rule("keys.1")
@pytest.mark.parametrize(("environment", "infix"), [(Environment.SANDBOX, "sand"), (Environment.LIVE, "live")])
def test_a_new_key_has_the_forms_of_its_environment_and_keeps_no_secret(environment: Environment, infix: str) -> None:
    facts: dict[str, Any] = {"id": "key_1", "business_id": "biz_1", "environment": environment, "name": "Server"}
    key, secret = ApiKey.generate(**facts, secret_hex=SECRET_HEX, public_hex=PUBLIC_HEX, now=NOW)
    assert (secret, key.public_key) == (f"ssk_{infix}_{SECRET_HEX}", f"spk_{infix}_{PUBLIC_HEX}")
    assert (key.secret_display, key.status) == (f"ssk_{infix}_...cdef", ApiKeyStatus.ACTIVE)
    assert key.secret_hash == hashlib.sha256(secret.encode()).digest()
    assert SECRET_HEX not in repr(key)


GOOD = "ssk_sand_" + "a" * 48
NO_SECRETS = [
    *("", "ssk_sand_", GOOD[:-1], GOOD + "a", GOOD + "\n", " " + GOOD, GOOD.upper(), GOOD.replace("a" * 9, "g" * 9)),
    *("ssk_sand_" + "A" * 48, "ssk_sand_" + "٠" * 48, "ssk_test_" + "a" * 48, "spk_sand_" + "a" * 32),
    *("spk_live_" + "a" * 48, "ssk_sand_...cdef", "\udc00"),
]


@pytest.mark.parametrize("text", NO_SECRETS, ids=ascii)
def test_a_secret_of_another_form_is_refused_like_an_unknown_one(text: str) -> None:
    assert refusal_of(parse_secret, text).code is ErrorCode.INVALID_API_KEY


@pytest.mark.rule("keys.3")
@pytest.mark.parametrize("status", BusinessStatus)
@pytest.mark.parametrize("kyc", KycStatus)
@pytest.mark.parametrize("environment", Environment)
def test_live_needs_an_approved_kyc_and_everything_an_active_business(
    status: BusinessStatus, kyc: KycStatus, environment: Environment
) -> None:
    business = a_business(status=status, kyc_status=kyc)
    expected = None
    if status is not BusinessStatus.ACTIVE:
        expected = ErrorCode.BUSINESS_RESTRICTED
    elif environment is Environment.LIVE and kyc is not KycStatus.APPROVED:
        expected = ErrorCode.KYC_REQUIRED
    if expected is None:
        business.ensure_may_use(environment)
    else:
        assert refusal_of(business.ensure_may_use, environment).code is expected


def test_members_and_strangers_are_told_the_same() -> None:
    for role in (Role.OWNER, Role.ADMIN):
        ensure_manager(role)
    for other in (Role.MEMBER, None):
        assert refusal_of(ensure_manager, other).code is ErrorCode.FORBIDDEN
