"""A page of another site whose name is pointed at the machine on which `payagg dev` runs."""

import httpx

from lab.attack.target import PATIENCE, AttackResult, Target

NAMES = (
    "evil.example:{port}",
    "evil.example",
    "127.0.0.1.evil.example:{port}",
    "localhost.evil.example",
    "0.0.0.0:{port}",
)
PATHS = ("/dev/inbox", "/dev/inbox/deliveries", "/metrics", "/docs", "/openapi.json", "/api/v1/payments/context")


def attack_dev_under_another_name(target: Target) -> AttackResult:
    """Reads `dev`'s pages and data under other host names."""
    port = target.dev_origin.rpartition(":")[2]
    with httpx.Client(base_url=target.dev_origin, timeout=PATIENCE, trust_env=False) as client:
        answers = [
            client.get(path, headers=target.as_key | {"Host": name.format(port=port)})
            for name in NAMES
            for path in PATHS
        ]
    read = sum(answer.status_code == 200 for answer in answers)
    statuses = ", ".join(sorted({str(answer.status_code) for answer in answers}))
    return AttackResult(
        f"{len(answers)} requests under {len(NAMES)} names", f"{read} read; answered {statuses}", read > 0
    )
