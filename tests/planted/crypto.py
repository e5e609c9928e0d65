"""Defects of signatures, tokens and encryption at rest."""

from tests.planted.defect import Defect

SIGNATURES = (
    Defect(
        "the signature of a re-serialised body is taken",
        "a signature is over the raw bytes",
        "adapters/providers/provider_a/webhook.py",
        {
            "hmac.new(secret.encode(), body, DIGEST)": (
                "hmac.new(secret.encode(), msgspec.json.encode(msgspec.json.decode(body)), DIGEST)"
            )
        },
        "unit/providers/test_traps.py::test_trap_2_a_reserialised_body_is_another_body",
    ),
    Defect(
        "an empty secret signs",
        "without a secret nothing is authentic",
        "adapters/providers/provider_b/webhook.py",
        {"return (base64_matches or hex_matches) and bool(secret)": "return base64_matches or hex_matches"},
        "unit/providers/test_traps.py::test_trap_2_an_empty_secret_proves_nothing",
    ),
    Defect(
        "the beginning of a signature is enough",
        "a signature is compared whole",
        "adapters/providers/provider_a/webhook.py",
        {"hmac.compare_digest(digest, expected)": "hmac.compare_digest(digest[:64], expected[:64])"},
        "integration/providers/test_providers_contract.py::TestPaystack::test_every_altered_signature_is_refused",
    ),
    Defect(
        "the other environment's secret proves an event",
        "an event is proven by the secret of its own address",
        "application/provider_events.py",
        {"return SignatureFault.OTHER_ENVIRONMENT": "return None"},
        "integration/providers/test_providers_inbound.py"
        "::test_every_forged_signature_is_refused_alike_and_leaves_nothing",
    ),
    Defect(
        "a replaced provider secret proves events for ever",
        "a replaced secret ends after 24 hours",
        "application/gateway_credentials.py",
        {"return tuple(one for one in kept if now < one.valid_until)": "return tuple(kept)"},
        "integration/providers/test_event_secrets.py"
        "::test_the_old_secret_proves_events_for_24_hours_beside_the_new_one",
    ),
    Defect(
        "our signature leaves out the timestamp",
        "the signature of a webhook covers id, timestamp and body",
        "domain/signing.py",
        {'f"{id}.{timestamp}.".encode()': 'f"{id}.0.".encode()'},
        "unit/test_webhook_signatures.py::test_the_specifications_own_vector",
    ),
    Defect(
        "a merchant's old secret signs for ever",
        "after a rotation the old secret signs for a day",
        "domain/webhook.py",
        {
            "if self.previous_secret and self.previous_secret_expires_at and now < self.previous_secret_expires_at:": (
                "if self.previous_secret and self.previous_secret_expires_at and now:"
            )
        },
        "unit/test_domain_webhook.py::test_the_old_secret_signs_beside_the_new_one_for_a_day",
    ),
)

TOKENS = (
    Defect(
        "the signature of a token is not verified",
        "a forged token is unauthorized",
        "adapters/security.py",
        {'options={"require": self._required}': 'options={"require": self._required, "verify_signature": False}'},
        "unit/test_security_tokens.py::test_a_forged_token_is_unauthorized",
    ),
    Defect(
        "an expired token is let in",
        "a token ends",
        "adapters/security.py",
        {'options={"require": self._required}': 'options={"require": self._required, "verify_exp": False}'},
        "unit/test_security_tokens.py::test_a_well_signed_token_with_bad_claims_is_unauthorized",
    ),
    Defect(
        "a token may live for ever",
        "a token lives no longer than the setting says",
        "adapters/security.py",
        {"self._life(claims) > self._seconds_max": "self._life(claims) < 0"},
        "unit/test_security_tokens.py::test_a_token_that_lives_too_long_is_unauthorized",
    ),
    Defect(
        "the audience of a token is not compared",
        "issuer and audience are the setting's",
        "adapters/security.py",
        {
            "audience=self._audience,\n                options={": (
                'audience=self._audience,\n                options={"verify_aud": False, '
            )
        },
        "unit/test_jwks.py::test_issuer_and_audience_are_checked_when_set",
    ),
    Defect(
        "weak shared secrets sign tokens",
        "weak keys stop the start",
        "adapters/security.py",
        {"if len(secret) < HMAC_BYTES_MIN:": "if len(secret) < 1:"},
        "unit/test_settings.py::test_a_server_refuses_a_token_key_that_is_weak_or_not_of_its_algorithm",
    ),
)

AT_REST = (
    Defect(
        "a sealed blob opens for any gateway",
        "a blob opens only where it was sealed",
        "adapters/security.py",
        {
            "encrypt(nonce, plain, context.encode())": "encrypt(nonce, plain, None)",
            "rest[_NONCE_BYTES:], context.encode())": "rest[_NONCE_BYTES:], None)",
        },
        "unit/test_security_vault.py::test_a_ciphertext_swapped_to_another_gateway_does_not_open",
    ),
    Defect(
        "every blob has the same nonce",
        "a nonce is used once",
        "adapters/security.py",
        {"nonce = secrets.token_bytes(_NONCE_BYTES)": "nonce = bytes(_NONCE_BYTES)"},
        "unit/test_security_vault.py::test_two_seals_of_one_plaintext_differ_and_do_not_show_it",
    ),
    Defect(
        "credentials are stored as they are",
        "credentials are encrypted at rest",
        "adapters/security.py",
        {
            "ciphertext = self._ciphers[self._first].encrypt(nonce, plain, context.encode())": "ciphertext = plain",
            "return cipher.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], context.encode())": (
                "return rest[_NONCE_BYTES:]"
            ),
        },
        "unit/test_gateway_credentials.py::test_no_view_and_no_stored_byte_shows_a_credential",
    ),
    Defect(
        "a new encryption key makes old blobs unreadable",
        "the first key seals and every key opens",
        "adapters/security.py",
        {"cipher = self._ciphers.get(kid)": "cipher = self._ciphers.get(kid) if kid == self._first else None"},
        "unit/test_security_vault.py::test_the_first_key_seals_and_every_key_opens",
    ),
    Defect(
        "the secret of an API key is kept",
        "of a secret its hash is kept",
        "domain/api_key.py",
        {"return hashlib.sha256(secret.encode()).digest()": "return secret.encode()[-32:]"},
        "unit/test_domain_api_key.py::test_the_secret_itself_is_nowhere_in_what_is_kept",
    ),
)

DEFECTS = (*SIGNATURES, *TOKENS, *AT_REST)
