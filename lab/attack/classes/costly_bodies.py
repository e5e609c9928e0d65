"""Bodies that cost the server more than their sender, and floods of bodies that are refused."""

import time

from lab.attack.target import AttackResult, Target

ROUNDS = 10
COSTLY = 0.05  # seconds of processor time for one request; what is usual costs a hundredth of it
FLOOD = 150
A_MINUTE = 60  # PAYAGG_REFUSED_BODY_LIMIT: so many at once, and as many again spread evenly over each minute
BODIES = {
    "1e308": b'{"gatewaySlug":"sandbox","amount":150000,"x":[' + b",".join([b"1e308"] * 10_500) + b"]}",
    "-1E-323": b'{"gatewaySlug":"sandbox","amount":150000,"x":[' + b",".join([b"-1E-323"] * 7_800) + b"]}",
    "lists": b'{"gatewaySlug":"sandbox","amount":150000,"x":[' + b",".join([b"[" * 29 + b"]" * 29] * 1_090) + b"]}",
    "digits": b'{"gatewaySlug":"sandbox","amount":150000,"x":[' + b",".join([b"9" * 4_000] * 15) + b"]}",
}


def attack_costly_json_without_a_credential(target: Target) -> AttackResult:
    """Sends numbers and lists that are dear to read to `process`."""
    return _costliest(target, f"/api/v1/public/payments/{target.a_payment()}/process", {}, "process")


def attack_costly_json_with_a_key(target: Target) -> AttackResult:
    """Sends the same to `initiate`, whose bodies may be larger."""
    return _costliest(target, "/api/v1/payments/initiate", target.as_key, "initiate")


def attack_flood_of_refused_bodies(target: Target) -> AttackResult:
    """Sends bodies that are no JSON again and again."""
    path, headers = f"/api/v1/public/payments/{target.a_payment()}/process", {"Content-Type": "application/json"}
    began = time.monotonic()
    statuses = [
        target.ask("POST", path, source="127.0.0.77", content=b"{", headers=headers).status_code for _ in range(FLOOD)
    ]
    refused = statuses.count(429)
    # No one answer tells: a token that came back during the flood may be taken by any of them, so by the last one too.
    room = A_MINUTE * (1 + (time.monotonic() - began) / 60) + 1
    succeeded = not refused or FLOOD - refused > room
    return AttackResult(f"{FLOOD} malformed bodies to process", f"{refused} answered 429", succeeded)


def _costliest(target: Target, path: str, credential: dict[str, str], name: str) -> AttackResult:
    worst, what = 0.0, ""
    headers = credential | {"Content-Type": "application/json"}
    for shape, body in BODIES.items():
        before = target.cpu()
        for _ in range(ROUNDS):
            target.ask("POST", path, content=body, headers=headers)
        spent = (target.cpu() - before) / ROUNDS
        if spent >= worst:
            worst, what = spent, shape
    happened = f"at most {worst * 1000:.0f} ms of processor time for each ({what})"
    return AttackResult(f"63 KB of {', '.join(BODIES)} to {name}", happened, worst > COSTLY)
