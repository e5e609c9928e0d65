"""The receivers of docs/verifying-webhooks.md: each is started, sent a signed event, and a forged one."""

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from payagg_testing.conformance.receiver import check_receiver

from payagg.domain.signing import secret_text, signed_headers
from tests.integration.process.listings import ReadersShell, listings
from tests.support.machine import ROOT, absent, node_package, program
from tests.support.ports import free_port
from tests.support.processes import wait_until

pytestmark = pytest.mark.release
DOCS = ROOT / "docs"
LISTINGS = list(listings(DOCS / "verifying-webhooks.md"))
RECIPES = {listing.use: listing for listing in LISTINGS if listing.use}
VERIFIERS = {one.language: one for one in listings(DOCS / "guide" / "webhooks.md") if one.use == "verify"}
BY_HAND = {one.language: one.code for one in LISTINGS if not one.use}
KEY, STRANGER = b"k" * 32, b"x" * 32
BODY = '{"id":"evt_1","type":"payment.success","data":{"customerName":"Adébáyọ̀ ₦"}}'.encode()
# Laravel's own router, request and response, as Debian packages them. What a whole Laravel application adds is here in
# brief: the helper `response`, and the kernel that hands the request to the router.
ILLUMINATE = Path("/usr/share/php/Illuminate")
LARAVEL = f"""<?php
error_reporting(E_ALL & ~E_DEPRECATED);
require_once '{ILLUMINATE}/Routing/autoload.php';
require_once '{ILLUMINATE}/Events/autoload.php';
function response($body, $status) {{ return new Illuminate\\Http\\Response($body, $status); }}
$container = new Illuminate\\Container\\Container();
$router = new Illuminate\\Routing\\Router(new Illuminate\\Events\\Dispatcher($container), $container);
$container->instance('router', $router);
Illuminate\\Support\\Facades\\Facade::setFacadeApplication($container);
require_once 'verify.php';
require 'routes.php';
$request = Illuminate\\Http\\Request::capture();
$container->instance(Illuminate\\Http\\Request::class, $request);
try {{
    $router->dispatch($request)->send();
}} catch (Symfony\\Component\\HttpKernel\\Exception\\HttpException $refused) {{
    http_response_code($refused->getStatusCode());
}}
"""
DJANGO = """
import os
from django.conf import settings
settings.configure(SECRET_KEY="t", ROOT_URLCONF="receiver", ALLOWED_HOSTS=["*"], DEBUG=False)
import django
django.setup()
from django.core.management import call_command
call_command("runserver", f"127.0.0.1:{os.environ['PORT']}", "--noreload", skip_checks=True)
"""


# Of each recipe its file and what starts it, and the files beside it.
STARTS = {
    "flask": ("receiver.py", "python -m flask --app receiver run --port $PORT"),
    "django": ("receiver.py", "python run.py"),
    "fastapi": ("receiver.py", "python -m uvicorn receiver:app --port $PORT"),
    "express": ("receiver.mjs", "node receiver.mjs"),
    "laravel": ("routes.php", "php -S 127.0.0.1:$PORT index.php"),
    "server": ("main.go", "./receiver"),
}
BESIDE = {
    "django": {"run.py": DJANGO},
    "laravel": {"verify.php": BY_HAND["php"], "index.php": LARAVEL},
    "server": {"webhooks/verify.go": BY_HAND["go"], "go.mod": "module shop.example\n\ngo 1.19\n"},
}


@contextlib.contextmanager
def receiving(use: str, folder: Path) -> Iterator[str]:
    """The address of a running receiver."""
    (name, start), port = STARTS[use], free_port()
    program("go" if use == "server" else start.split()[0])
    if use == "express":
        node_package("express")
    if use == "laravel" and not (ILLUMINATE / "Routing" / "autoload.php").is_file():
        absent("Laravel's router is not installed (Debian: apt install php-illuminate-routing php-illuminate-events)")
    (folder / "webhooks").mkdir()
    for file, code in {name: RECIPES[use].code, **BESIDE.get(use, {})}.items():
        (folder / file).write_text(code)
    go = {"GOCACHE": str(folder / "cache"), "GOPROXY": "off", "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"}
    environment = ReadersShell(folder, {"WEBHOOK_SECRET": secret_text(KEY), "PORT": str(port), **go}).environment
    if use == "server":
        subprocess.run(["go", "build", "-o", "receiver", "."], cwd=folder, env=environment, check=True)
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(["sh", "-c", f"exec {start}"], cwd=folder, env=environment, stdout=log, stderr=log)

        def answers() -> bool:
            assert process.poll() is None, (folder / "log").read_text()
            with contextlib.suppress(httpx.TransportError):
                return httpx.get(f"http://127.0.0.1:{port}/", trust_env=False, verify=False).status_code > 0
            return False

        try:
            wait_until(answers)
            yield f"http://127.0.0.1:{port}/hooks"
        finally:
            process.terminate()
            process.wait(30)


@pytest.mark.parametrize("use", STARTS)
def test_a_receiver_takes_what_is_ours_and_passes_the_receiver_kit(use: str, tmp_path: Path) -> None:
    with receiving(use, tmp_path) as address:
        for key, body, status in ((KEY, BODY, 204), (STRANGER, BODY, 400), (KEY, BODY + b" ", 400)):
            sent = signed_headers([key], "evt_1", int(time.time()), BODY)
            headers = {**sent, "content-type": "application/json"}
            answer = httpx.post(address, content=body, headers=headers, trust_env=False, timeout=60)
            assert answer.status_code == status, (tmp_path / "log").read_text()
        # Some recipes answer first and handle the event afterwards.
        wait_until(lambda: "payment.success evt_1" in (tmp_path / "log").read_text())
        assert (tmp_path / "log").read_text().count("payment.success evt_1") == 1
        findings = check_receiver(address, secret_text(KEY))
    assert [str(finding) for finding in findings if finding.fault] == []


def test_every_recipe_is_tried() -> None:
    assert set(RECIPES) == set(STARTS)


@pytest.mark.parametrize("language", ["python", "js"])
def test_the_libraries_verify_as_the_guide_says(language: str, tmp_path: Path) -> None:
    sent = signed_headers([KEY], "evt_1", int(time.time()), BODY)
    given = json.dumps({"headers": sent, "body": BODY.decode(), "forged": BODY.decode() + " "})
    shell = ReadersShell(tmp_path, {"WEBHOOK_SECRET": secret_text(KEY), "GIVEN": given})
    tried = {
        "python": """
import json
given = json.loads(os.environ["GIVEN"])
assert verified(given["headers"], given["body"].encode())["id"] == "evt_1"
try:
    verified(given["headers"], given["forged"].encode())
except Exception as error:
    print(type(error).__name__)
""",
        "js": """
const given = JSON.parse(process.env.GIVEN);
if (verified(given.headers, Buffer.from(given.body)).id !== "evt_1") process.exit(1);
try { verified(given.headers, Buffer.from(given.forged)); } catch (error) { console.log(error.constructor.name); }
""",
    }
    one = VERIFIERS[language]
    shell.run(type(one)(language, "", one.code + tried[language]))
    assert shell.printed == "WebhookVerificationError\n"
