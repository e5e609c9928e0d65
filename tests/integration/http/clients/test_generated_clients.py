"""Clients that others' generators make of our description: they compile, and pay against the running product."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.http_world import Api, Shop
from tests.support.machine import node_package, program

pytestmark = [pytest.mark.release]
PROGRAMS = Path(sys.executable).parent
PATIENCE = 240  # seconds; a bound for a slow machine, never an expectation
Make = Callable[[Path, Path], Awaitable[list[str]]]

BY_OPENAPI_PYTHON_CLIENT = """
import json, os
from generated import AuthenticatedClient
from generated.api.payments import get_payment, initiate_payment, simulate_payment
from generated.models import ErrorEnvelope, InitiatedPaymentEnvelope, InitiatePayment, PaymentDetailEnvelope
from generated.models import SimulatePayment

client = AuthenticatedClient(base_url=os.environ["BASE_URL"], token=os.environ["SECRET_KEY"])
made = initiate_payment.sync(client=client, body=InitiatePayment(amount=150000))
assert isinstance(made, InitiatedPaymentEnvelope)
read = get_payment.sync(made.data.reference, client=client)
assert isinstance(read, PaymentDetailEnvelope)
ended = simulate_payment.sync(made.data.reference, client=client, body=SimulatePayment(outcome="SUCCESS"))
assert isinstance(ended, PaymentDetailEnvelope)
refused = initiate_payment.sync(client=client, body=InitiatePayment(amount=99))
assert isinstance(refused, ErrorEnvelope)
statuses = [made.data.status.value, read.data.status.value, ended.data.status.value]
print(json.dumps([*statuses, refused.error.code.value, refused.error.field]))
"""
BY_OPENAPI_TYPESCRIPT = """
import createClient from "openapi-fetch";
import type { paths } from "./generated.js";

const headers = { Authorization: `Bearer ${process.env.SECRET_KEY}` };
const client = createClient<paths>({ baseUrl: process.env.BASE_URL, headers });
const made = await client.POST("/payments/initiate", { body: { amount: 150000 } });
const path = { reference: made.data!.data.reference };
const read = await client.GET("/payments/{reference}", { params: { path } });
const ended = await client.POST("/payments/{reference}/simulate", { params: { path }, body: { outcome: "SUCCESS" } });
const refused = await client.POST("/payments/initiate", { body: { amount: 99 } });
const statuses = [made, read, ended].map((answer) => answer.data!.data.status);
console.log(JSON.stringify([...statuses, refused.error!.error.code, refused.error!.error.field]));
"""
BY_OPENAPI_GENERATOR_IN_TYPESCRIPT = """
import { Configuration, type ErrorEnvelope, PaymentsApi, ResponseError } from "./generated/index.js";

const own = new Configuration({ basePath: process.env.BASE_URL, accessToken: process.env.SECRET_KEY });
const payments = new PaymentsApi(own);
const made = await payments.initiatePayment({ initiatePayment: { amount: 150000 } });
const reference = made.data.reference;
const read = await payments.getPayment({ reference });
const ended = await payments.simulatePayment({ reference, simulatePayment: { outcome: "SUCCESS" } });
let refused: ErrorEnvelope | undefined;
try {
  await payments.initiatePayment({ initiatePayment: { amount: 99 } });
} catch (error) {
  if (error instanceof ResponseError) refused = await error.response.json();
}
const statuses = [made, read, ended].map((answer) => answer.data.status);
console.log(JSON.stringify([...statuses, refused!.error.code, refused!.error.field]));
"""


def node(*names: str) -> list[str]:
    """The command of one of npm's programs, or of node itself."""
    return [program("node"), *(str(node_package(".bin") / name) for name in names)]


async def ran(command: list[str], folder: Path, **environment: str) -> str:
    """What it printed; its own complaint when it fails."""
    path = os.pathsep.join([str(PROGRAMS), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(folder), **environment}
    run = partial(subprocess.run, command, cwd=folder, env=env, capture_output=True, timeout=PATIENCE, text=True)
    done = await asyncio.to_thread(run)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


async def compiled(folder: Path, code: str) -> list[str]:
    """The command of a TypeScript program that compiled, together with all that was generated."""
    (folder / "journey.ts").write_text(code)
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "node_modules").symlink_to(node_package(""))
    options = ["--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom,dom.iterable"]
    await ran([*node("tsc"), *options, "--types", "node", "--skipLibCheck", "--outDir", "built", "journey.ts"], folder)
    return [*node(), "built/journey.js"]


async def openapi_python_client(description: Path, folder: Path) -> list[str]:
    (folder / "config.json").write_text(
        json.dumps({"content_type_overrides": {"image/png": "application/octet-stream"}, "post_hooks": []})
    )
    generate = [str(PROGRAMS / "openapi-python-client"), "generate", "--path", str(description), "--meta", "none"]
    told = await ran([*generate, "--output-path", "generated", "--config", "config.json"], folder)
    assert "WARNING" not in told, told
    await ran([sys.executable, "-m", "compileall", "-q", "generated"], folder)
    (folder / "journey.py").write_text(BY_OPENAPI_PYTHON_CLIENT)
    # As the program's writer sees the generated types.
    types = ["--strict", "--follow-imports=silent", "--cache-dir", str(folder / "cache")]
    await ran([sys.executable, "-m", "mypy", *types, "journey.py"], folder)
    return [sys.executable, "journey.py"]


async def openapi_typescript(description: Path, folder: Path) -> list[str]:
    await ran([*node("openapi-typescript"), str(description), "--output", "generated.d.ts"], folder)
    return await compiled(folder, BY_OPENAPI_TYPESCRIPT)


async def openapi_generator_typescript(description: Path, folder: Path) -> list[str]:
    """Java comes with it."""
    command = [str(PROGRAMS / "openapi-generator-cli"), "generate", "-i", str(description), "-g", "typescript-fetch"]
    await ran([*command, "-o", "generated", "--additional-properties=importFileExtension=.js"], folder)
    return await compiled(folder, BY_OPENAPI_GENERATOR_IN_TYPESCRIPT)


@pytest.mark.parametrize(
    ("make", "described"),
    [
        (openapi_python_client, "openapi.json"),
        (openapi_typescript, "openapi.json"),
        (openapi_generator_typescript, "openapi/client.json"),
    ],
    ids=lambda given: getattr(given, "__name__", given),
)
async def test_a_generated_client_compiles_and_initiates_reads_and_simulates(
    api: Api, make: Make, described: str, tmp_path: Path, shop: Shop
) -> None:
    description = tmp_path / "openapi.json"
    description.write_bytes((await api.client.get(f"{api.origin}/{described}")).content)
    command = await make(description, tmp_path)
    told = await ran(command, tmp_path, BASE_URL=f"{api.origin}/api/v1", SECRET_KEY=shop.sandbox)
    *statuses, code, field = json.loads(told)
    assert statuses == ["INITIATED", "INITIATED", "SUCCESS"]
    # A client that checks amounts itself lets no bad one out: it meets another refusal.
    assert (code, field) in (("VALIDATION_ERROR", "amount"), ("PAYMENT_ALREADY_FINAL", None))
