"""Our signatures, judged by libraries we did not write and by the snippets we give to merchants."""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import standardwebhooks
import svix

from payagg.domain.signing import secret_key, secret_text, signature, signed_headers

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "verifying-webhooks.md").read_text()
MODULES = ROOT / "tests" / "node"
OLD, NEW, STRANGER = b"o" * 32, b"n" * 32, b"x" * 32
BODY = '{"id":"evt_1","type":"payment.success","data":{"customerName":"Adébáyọ̀ ₦"}}'.encode()


def headers(*keys: bytes, at: int | None = None, body: bytes = BODY) -> dict[str, str]:
    return signed_headers(keys or (NEW, OLD), "evt_1", at if at is not None else int(time.time()), body)


def test_the_specifications_own_vector() -> None:
    key = secret_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    found = signature([key], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_secret_is_read_as_it_is_shown() -> None:
    assert secret_key(secret_text(NEW)) == NEW


def test_the_service_signature_is_the_standard_one() -> None:
    sent = headers()
    assert sent["x-service-signature"] == sent["webhook-signature"]


def the_snippet() -> Callable[[str, dict[str, str], bytes], Any]:
    [code] = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
    namespace: dict[str, Any] = {}
    exec(compile(code, "docs/verifying-webhooks.md", "exec"), namespace)
    verified: Callable[[str, dict[str, str], bytes], Any] = namespace["verified"]
    return verified


def verified_by_svix(secret: str, sent: dict[str, str], body: bytes) -> Any:
    svix.Webhook(secret).verify(body, sent)
    return json.loads(body)


VERIFIERS: dict[str, Callable[[str, dict[str, str], bytes], Any]] = {
    "standardwebhooks": lambda secret, sent, body: standardwebhooks.Webhook(secret).verify(body, sent),
    "svix": verified_by_svix,
    "our snippet": the_snippet(),
}


@pytest.mark.parametrize("verify", VERIFIERS.values(), ids=VERIFIERS.keys())
def test_python_verifies_with_the_current_and_the_previous_secret(verify: Callable[..., Any]) -> None:
    for key in (NEW, OLD):
        assert verify(secret_text(key), headers(), BODY)["id"] == "evt_1"


@pytest.mark.parametrize("verify", VERIFIERS.values(), ids=VERIFIERS.keys())
@pytest.mark.parametrize(
    ("key", "sent", "body"),
    [
        (STRANGER, headers(), BODY),
        (NEW, headers(), BODY + b" "),
        (NEW, {**headers(), "webhook-id": "evt_2"}, BODY),
        (NEW, headers(at=int(time.time()) - 3600), BODY),
        (NEW, headers(at=int(time.time()) + 3600), BODY),
        (NEW, headers(STRANGER), BODY),
    ],
    ids=["another secret", "a changed body", "a changed id", "too old", "from the future", "signed by another"],
)
def test_python_refuses_what_is_not_ours(
    verify: Callable[..., Any], key: bytes, sent: dict[str, str], body: bytes
) -> None:
    with pytest.raises(Exception, match=r".+"):
        verify(secret_text(key), sent, body)


def node() -> str:
    """The program; skips without it, or without the packages that `npm ci` brings, but never in CI."""
    program = shutil.which("node")
    missing = "node is not installed" if program is None else ""
    if not missing and not (MODULES / "node_modules" / "standardwebhooks").is_dir():
        missing = "run `npm ci` in tests/node first"
    if missing:
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    assert program is not None
    return program


NODE_VERIFIERS = {
    "standardwebhooks": (
        'const { Webhook } = require("standardwebhooks");'
        "const verified = (secret, headers, body) => new Webhook(secret).verify(body.toString(), headers);"
    ),
    "svix": (
        'const { Webhook } = require("svix");'
        "const verified = (secret, headers, body) => new Webhook(secret).verify(body.toString(), headers);"
    ),
    "our snippet": "".join(re.findall(r"```js\n(.*?)```", DOCUMENT, re.DOTALL)),
}


@pytest.mark.parametrize("code", NODE_VERIFIERS.values(), ids=NODE_VERIFIERS.keys())
def test_node_verifies_ours_and_refuses_the_rest(code: str) -> None:
    now = int(time.time())
    cases = [
        (True, NEW, headers(), BODY),
        (True, OLD, headers(), BODY),
        (False, STRANGER, headers(), BODY),
        (False, NEW, headers(), BODY + b" "),
        (False, NEW, {**headers(), "webhook-id": "evt_2"}, BODY),
        (False, NEW, headers(at=now - 3600), BODY),
        (False, NEW, headers(at=now + 3600), BODY),
    ]
    given = [{"secret": secret_text(key), "headers": sent, "body": body.hex()} for _, key, sent, body in cases]
    script = (
        code
        + """
        const given = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
        const results = given.map(({ secret, headers, body }) => {
          try { return verified(secret, headers, Buffer.from(body, "hex")).id === "evt_1"; } catch { return false; }
        });
        console.log(JSON.stringify(results));
        """
    )
    done = subprocess.run(
        [node(), "-e", script],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        cwd=MODULES,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [expected for expected, *_ in cases]


@pytest.mark.parametrize("language", ["python", "js", "php", "go"])
def test_the_document_has_one_snippet_for_each_language(language: str) -> None:
    assert len(re.findall(rf"```{language}\n", DOCUMENT)) == 1
