"""Our signatures, judged by libraries we did not write and by the snippets we give to merchants."""

import json
import re
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest
import standardwebhooks

from payagg.domain.signing import secret_key, secret_text, signature, signed_headers
from tests.support.machine import NODE, ROOT, node_package, program

DOCUMENT = (ROOT / "docs" / "verifying-webhooks.md").read_text()
OLD, NEW, STRANGER = b"o" * 32, b"n" * 32, b"x" * 32
BODY = '{"id":"evt_1","type":"payment.success","data":{"customerName":"Adébáyọ̀ ₦"}}'.encode()


def headers(*keys: bytes, at: int | None = None) -> dict[str, str]:
    return signed_headers(keys or (NEW, OLD), "evt_1", at or int(time.time()), BODY)


@pytest.mark.rule("webhooks.6")
def test_the_specifications_own_vector_in_both_headers() -> None:
    key = secret_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    found = signature([key], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    sent = headers()
    assert sent["x-service-signature"] == sent["webhook-signature"]


def test_a_secret_is_read_as_it_is_shown_and_what_is_not_base64_is_none() -> None:
    assert secret_key(secret_text(NEW)) == NEW
    for text in ("whsec_!!!!", "whsec_c2VjcmV0 ", "whsec_c2VjcmV"):
        with pytest.raises(ValueError, match=r"base64|padding|characters"):
            secret_key(text)


def snippet(language: str) -> str:
    [code] = re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)
    return str(code)


def the_snippet() -> Callable[[str, dict[str, str], bytes], Any]:
    namespace: dict[str, Any] = {}
    exec(compile(snippet("python"), "docs/verifying-webhooks.md", "exec"), namespace)
    verified: Callable[[str, dict[str, str], bytes], Any] = namespace["verified"]
    return verified


def verified_by_svix(secret: str, sent: dict[str, str], body: bytes) -> Any:
    import svix  # takes half a second

    svix.Webhook(secret).verify(body, sent)
    return json.loads(body)


VERIFIERS: dict[str, Callable[[str, dict[str, str], bytes], Any]] = {
    "standardwebhooks": lambda secret, sent, body: standardwebhooks.Webhook(secret).verify(body, sent),
    "svix": verified_by_svix,
    "our snippet": the_snippet(),
}


def cases() -> list[tuple[bool, bytes, dict[str, str], bytes]]:
    """Whether it is to be verified, the merchant's secret, the headers and the body."""
    now = int(time.time())
    return [
        (True, NEW, headers(), BODY),
        (True, OLD, headers(), BODY),
        (False, STRANGER, headers(), BODY),
        (False, NEW, headers(), BODY + b" "),
        (False, NEW, {**headers(), "webhook-id": "evt_2"}, BODY),
        (False, NEW, {**headers(), "webhook-timestamp": "soon"}, BODY),
        (False, NEW, headers(at=now - 3600), BODY),
        (False, NEW, headers(at=now + 3600), BODY),
        (False, NEW, headers(STRANGER), BODY),
    ]


@pytest.mark.rule("webhooks.5")
@pytest.mark.parametrize("verify", VERIFIERS.values(), ids=VERIFIERS.keys())
def test_python_verifies_with_the_current_and_the_previous_secret(verify: Callable[..., Any]) -> None:
    for is_ours, key, sent, body in cases():
        if is_ours:
            assert verify(secret_text(key), sent, body)["id"] == "evt_1"
        else:
            with pytest.raises(Exception, match=r".+"):
                verify(secret_text(key), sent, body)


def node(code: str, given: str) -> str:
    """`verified` of `code` on each of the given, with what `npm ci` in tests/node brought."""
    node_package("standardwebhooks")
    script = """
        const given = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
        const results = given.map(({ secret, headers, body }) => {
          try { return verified(secret, headers, Buffer.from(body, "hex")).id === "evt_1"; } catch { return false; }
        });
        console.log(JSON.stringify(results));
    """
    command = [program("node"), "-e", code + script]
    return subprocess.run(command, input=given, capture_output=True, text=True, cwd=NODE, check=True).stdout


def by_package(name: str) -> str:
    return (
        f'const {{ Webhook }} = require("{name}");'
        "const verified = (secret, headers, body) => new Webhook(secret).verify(body.toString(), headers);"
    )


# tests/integration/process/test_webhook_recipes.py starts the receivers in other languages.
@pytest.mark.rule("webhooks.5")
@pytest.mark.parametrize(
    "code",
    [by_package("standardwebhooks"), by_package("svix"), snippet("js")],
    ids=["standardwebhooks", "svix", "our snippet"],
)
def test_node_verifies_ours_and_refuses_the_rest(code: str) -> None:
    asked = cases()
    given = [{"secret": secret_text(key), "headers": sent, "body": body.hex()} for _, key, sent, body in asked]
    assert json.loads(node(code, json.dumps(given))) == [expected for expected, *_ in asked]
