"""The page of the SQL that a payment runs: each statement, when it runs and its rule."""

import re

from payagg.adapters.postgres.fast_path import statements as fast_path
from payagg.adapters.postgres.repositories import (
    anomalies,
    attempts,
    counters,
    endpoints,
    gateways,
    payments,
    provider_events,
    upkeep,
    webhook_events,
)
from payagg.adapters.postgres.statement import Statement

# For each statement: name, when it runs, rule.
STATEMENTS: dict[str, list[tuple[Statement, str, str]]] = {
    "Initiate: `POST /payments/initiate`": [
        (fast_path.KEYS, "Find API keys", "First, for a key that is not cached. A key is found by its hash alone."),
        (
            fast_path.TOUCH,
            "Note that a key was used",
            "After a request with a key, at most once a minute for each. It skips a key that is locked.",
        ),
        (
            payments.ADD,
            "Add payments",
            "Once for all requests of one moment. An idempotency key has one payment and a reference is used once; "
            "a key or business that changed since it was cached adds nothing.",
        ),
        (
            fast_path.ORIGINALS,
            "Find the payments of idempotency keys",
            "If an idempotency key already has a payment. The answer is that payment.",
        ),
    ],
    "Process: `POST /public/payments/{reference}/process`": [
        (
            payments.LOCK,
            "Lock a payment",
            "First in every change of a payment. Changes of one payment follow each other.",
        ),
        (
            attempts.ATTEMPTS,
            "Read the attempts of a payment",
            "In the same round trip as the lock. A payment has at most one open charge; a repeat gets its hand-off.",
        ),
        (
            payments.BUSINESS_OF,
            "Read the business of a payment",
            "Together with it. A suspended business takes no payments.",
        ),
        (
            gateways.ALL,
            "Read the gateways",
            "For the choice of a gateway. One that drains or is disabled gets no new charge.",
        ),
        (
            gateways.OF_BUSINESS,
            "Read a business's settings of gateways",
            "Together with it. A gateway that the business switched off gets no charge.",
        ),
        (
            provider_events.ALL_HEALTH,
            "Read the health of providers",
            "Together with it, and after a call. A paused provider gets no charge.",
        ),
        (
            attempts.ADD_ATTEMPT,
            "Add an attempt",
            "Committed before the provider is called. No charge exists that the database does not know.",
        ),
        (
            payments.ADD_CALL,
            "Add a call of a provider",
            "In the transaction before the call. It records what is sent to a provider, without secrets.",
        ),
    ],
    "Change of status: a provider's event, a simulation, the end of the window": [
        (
            counters.SWEEP_HITS,
            "Remove old counts of requests",
            "Now and then, when an event or a limited request comes. A count is kept for its window only.",
        ),
        (
            counters.HIT,
            "Count a request",
            "Before an event is read. It counts the requests of an address over all processes.",
        ),
        (
            gateways.SETTLING,
            "Find the gateways that may sign an event",
            "Before the signature is checked. A deleted gateway's secrets still prove events of its payments.",
        ),
        (
            provider_events.ADD,
            "Store a provider's event",
            "After its signature is checked, before it is answered. An event is applied once, however often it comes.",
        ),
        (
            endpoints.SUBSCRIBERS_TO,
            "Find the endpoints of a payment, and its business's last event",
            "In the round trip of the lock. An event goes to the active endpoints of the payment's own environment. "
            "Event ids of one business only grow, so that a cursor misses none.",
        ),
        (
            anomalies.OF_PAYMENT,
            "Read the anomalies of a payment",
            "In the same round trip. The same fact about money opens no second anomaly.",
        ),
        (
            upkeep.ADVANCE,
            "Move the beginning of the sweep on",
            "First in the worker's sweep. It passes no INITIATED payment, nor the last 30 seconds.",
        ),
        (upkeep.PROGRESS, "Read the beginning of the sweep", "Second in the sweep."),
        (
            upkeep.EXPIRED,
            "Lock payments whose window has closed",
            "In the sweep. Only INITIATED payments expire by the clock; two workers never take the same one.",
        ),
        (endpoints.SUBSCRIBERS_OF, "Find the endpoints of businesses", "In the sweep, once for all its payments."),
        (
            webhook_events.LAST_EVENT,
            "Read the last event id of a business",
            "In the sweep. Event ids of one business only grow.",
        ),
        (
            payments.MOVE,
            "Change the status of a payment",
            "Once for each change. It moves the payment from the status that was read, adds the transition, and fails "
            "(by a division by zero) where the payment has moved on: a final status stays final.",
        ),
        (
            webhook_events.ADD_EVENT,
            "Add a webhook event",
            "In the transaction of the change, so that each change has its event and each event its change.",
        ),
        (
            webhook_events.ADD_DELIVERY,
            "Add a delivery",
            "In the same transaction, for each endpoint.",
        ),
        (
            attempts.SAVE_ATTEMPT,
            "Save an attempt",
            "After a provider's answer or event. It fails if another process has taken the attempt over.",
        ),
        (
            provider_events.SAVE,
            "Save what became of a provider's event",
            "Last, in the same transaction. An event is handled only if its change commits.",
        ),
    ],
}
INTRO = (
    "The statements of a payment, each at its first use: a change of status begins with the lock and the attempts of "
    "a process. Left out: BEGIN, COMMIT, casts of parameters, columns between the first and the last, the text of a "
    "statement of less than thirty words, whose name says all. A real run sends these statements and no other: "
    "tests/integration/http/test_sql_page.py."
)
BY_KEY_MAX = 29  # words of a statement whose name says all
_CAST = re.compile(r"(?<=\d)::[A-Z]+(?: WITH TIME ZONE)?(?:\[\])?")
_ITEM = r"[\w.$=]+(?: AS \w+| \+ waited| [a-z]+(?=[,)]))*"
_LIST = re.compile(rf"(?<![\w.$=])({_ITEM})(?:, {_ITEM}){{5,}}, ({_ITEM})")


def page() -> str:
    parts = ["# SQL of a payment", INTRO]
    for title, statements in STATEMENTS.items():
        parts.append(f"## {title}")
        for statement, name, sentence in statements:
            sql = _LIST.sub(r"\1, ..., \2", _CAST.sub("", statement.sql.decode().strip()))
            parts += [f"### {name}", sentence]
            if len(sql.split()) > BY_KEY_MAX:
                parts.append(f"```sql\n{sql}\n```")
    return "\n\n".join(parts) + "\n"
