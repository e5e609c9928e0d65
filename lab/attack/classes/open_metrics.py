"""What is paid, read from /metrics by anybody."""

from lab.attack.target import AttackResult, Target

PATHS = ("/metrics", "/metrics/", "//metrics", "/METRICS", "/metrics?x=1", "/%6detrics", "/api/v1/metrics")
CREDENTIALS: tuple[dict[str, str], ...] = (
    {},
    {"Authorization": "Bearer"},
    {"Authorization": "Bearer None"},
    {"Authorization": "Basic Og=="},
    {"X-Forwarded-For": "127.0.0.1"},
)


def attack_metrics_without_a_token(target: Target) -> AttackResult:
    """Asks for the metrics under several spellings, with no credential and with wrong ones."""
    asked = [(path, headers) for path in PATHS for headers in (*CREDENTIALS, target.as_key, target.as_owner)]
    answers = [target.ask("GET", path, headers=headers) for path, headers in asked]
    read = sum("payagg_" in answer.text for answer in answers)
    statuses = ", ".join(sorted({str(answer.status_code) for answer in answers}))
    return AttackResult(f"{len(asked)} ways to ask", f"{read} read them; answered {statuses}", read > 0)
