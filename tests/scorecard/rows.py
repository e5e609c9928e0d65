"""The 25 measures: what each is, what it should be, and where its figures come from."""

from dataclasses import dataclass

from tests.scorecard.reading import Noted, Reading, Run, Written

CONTRACT = "tests/integration/providers/test_providers_contract.py"
INBOUND = "tests/integration/providers/test_providers_inbound.py"


@dataclass(frozen=True)
class ScoreRow:
    number: int
    measure: str
    target: str
    readings: tuple[Reading, ...]


def in_tests(where: str, chosen: str = "", words: str = "{passed} tests pass", *, seconds: float = 480.0) -> Run:
    """`chosen` is part of their names. In one process: two would each start a Postgres of their own."""
    named = f" -k '{chosen}'" if chosen else ""
    return Run(f"pytest -q -n 0 {where}{named}", words, seconds=seconds)


def counted(where: str, chosen: str, pattern: str, words: str, *, seconds: float = 480.0) -> Run:
    """A test that prints what it counted."""
    return Run(f"pytest -q -n 0 -rP {where} -k '{chosen}'", words, pattern, seconds)


def soaked(part: str, words: str) -> Noted:
    return Noted("make soak", f"soak-{part}", words)


def row(number: int, measure: str, target: str, *readings: Reading) -> ScoreRow:
    return ScoreRow(number, measure, target, readings)


ROWS = (
    row(
        1,
        "64 callers `process` one payment at once",
        "exactly one charge in 100 % of 20 rounds (500 at night)",
        in_tests(
            "tests/integration/store/test_race_crowds.py",
            "64_clicks or 32_clicks",
            "1 charge in 5 of 5 rounds of 64 on two servers, and of 32 for each of two gateways ({passed} tests)",
        ),
        soaked("crowds", "the same in {times} times as many rounds"),
    ),
    row(
        2,
        "64 callers `initiate` with one idempotency key at once",
        "one row in 100 % of 20 rounds (500 at night)",
        in_tests("tests/integration/store/test_race_crowds.py", "one_key", "1 payment in 5 of 5 rounds"),
        soaked("crowds", "the same in {times} times as many rounds"),
    ),
    row(
        3,
        "Pairs of what may happen at once, drawn by seeds",
        "0 illegal histories in 20 rounds of each pair (200 at night)",
        in_tests(
            "tests/integration/store/test_race_grid.py",
            "",
            "0 illegal histories: 105 pairs of 14 actors, 2 rounds of each, and three at once ({passed} tests)",
        ),
        soaked("pairs", "the same in {times} times as many rounds"),
    ),
    row(
        4,
        "Crash matrix: 22 steps x process, Postgres, connections",
        "66 of 66 hold",
        Written(
            "make crash-matrix",
            "docs/crash-matrix.md",
            r"(?P<holds>[0-9]+) of (?P<all>[0-9]+) hold",
            "{holds} of {all} hold",
        ),
    ),
    row(
        5,
        "Simulated histories",
        "0 broken in 2,000 (100,000 at night); the same seed gives the same trace hash",
        Run(
            "payagg.testing.simulation --histories 500 --first 700000",
            "{broken} of {histories} broken",
            r"(?P<histories>[0-9]+) histories, [0-9.]+ each second, (?P<broken>[0-9]+) broken",
            600,
        ),
        in_tests("tests/unit/test_simulation.py", "one_seed", "{passed} tests of repeated seeds pass"),
        Noted("make simulate", "simulate", "{broken} of {histories} broken, {never} of what must happen never did"),
    ),
    row(
        6,
        "Rule-based machines with models of their own, on Postgres",
        "0 differences from the model",
        in_tests(
            "tests/integration/store/test_payment_machine.py",
            "",
            "0 differences: 12 histories of 20 steps, by use case",
        ),
        in_tests(
            "tests/integration/store/test_conformance.py",
            "",
            "0 differences: {passed} machines over HTTP, 3 histories of 12",
        ),
        soaked("machines", "0 differences in {times} times as many histories ({passed} tests)"),
    ),
    row(
        7,
        "Schemathesis, every check and phase",
        "0 failures, 0 x 500 in 5,000 cases (100,000 at night)",
        Run(
            "tests.fuzz.run",
            "0 failures in {cases} cases",
            r"(?P<cases>[0-9]+) generated, (?P=cases) passed",
            900,
        ),
    ),
    row(
        8,
        "Hostile values, over every field of every operation",
        "0 x 5xx in about 3,000 requests",
        counted(
            "tests/integration/http/test_http_hostile_grid.py",
            "never_our_fault",
            r"(?P<cells>[0-9]+) hostile requests",
            "0 x 5xx and 0 wrong answers in {cells} requests",
        ),
        in_tests(
            "tests/integration/http/test_http_hostile.py",
            "",
            "{passed} tests of bodies, paths, queries and uploads pass",
        ),
    ),
    row(
        9,
        "Every route with every kind of credential",
        "100 % of the cells as stated",
        counted(
            "tests/integration/http/test_http_access.py",
            "every_kind_of_credential",
            r"(?P<cells>[0-9]+) cells",
            "100 % of {cells} cells",
        ),
    ),
    row(
        10,
        "Forged webhooks at six routes",
        "0 accepted",
        in_tests(INBOUND, "forged or never_crosses", "0 accepted: {passed} tables of forgeries hold"),
    ),
    row(
        11,
        "Postgres and the process killed at random under load",
        "invariants hold; 503 alone while it is down; first success within 5 s",
        Run(
            "pytest -q -n 0 tests/soak",
            "1 round holds: {payments} payments, all settled {seconds} s after the last restart",
            r"(?P<payments>[0-9]+) payments, [0-9]+ paid unseen.*?settled in (?P<seconds>[0-9.]+) s",
        ),
        soaked("kills", "{rounds} rounds hold: {payments} payments"),
    ),
    row(
        12,
        "Patroni: a node is lost, synchronous mode",
        "0 acknowledged lost, gap up to 30 s",
        Written(
            "make ha",
            "docs/failover.md",
            r"Last run: (?P<holds>[0-9]+) of (?P<all>[0-9]+) hold",
            "{holds} of {all} faults and routes hold",
        ),
    ),
    row(
        13,
        "Patroni: planned switchover",
        "0 lost, gap up to 5 s",
        Written(
            "make ha",
            "docs/failover.md",
            r"\| (?P<fault>[^|]*switchover[^|]*?) \| (?P<route>[^|]+?) \| (?P<good>[0-9]+) \| (?P<lost>[0-9]+) \|"
            r"(?:[^|]*\|){5} (?P<gap>[0-9.]+ s) \|",
            "{lost} of {good} lost, gap {gap} ({route})",
        ),
    ),
    row(
        14,
        "Providers that hang, reset, err, answer garbage, twice or slowly",
        "no double charge, no connection held, others served",
        in_tests(
            f"{CONTRACT} tests/integration/checkout/test_process_refusals.py",
            "fault or timeout or unreachable or lost or duplicate or paused or unknown or once",
            "{passed} tests of faults pass",
        ),
        in_tests(
            "tests/integration/store/test_pool_pressure.py",
            "",
            "0 connections held while a provider hangs ({passed} tests)",
        ),
        Written(
            "make bench",
            "docs/performance.md",
            r"500 payers wait 9 s for their provider \| p99 (?P<during>[0-9.]+) ms beside (?P<alone>[0-9.]+)",
            "p99 of reads {during} ms while 500 payers wait, {alone} ms alone",
        ),
        soaked("faults", "{holds} of {drawn} network faults drawn by chance hold"),
    ),
    row(
        15,
        "The machine's clock: +2 h, -2 h, back 5 min, over midnight",
        "expiry by one clock; nothing expired comes back",
        in_tests(
            "tests/integration/process/test_clocks.py",
            "",
            "0 wrong in 5 jumps of the clock, and 6 for an expired payment",
        ),
    ),
    row(
        16,
        "Receiver away for an hour or for ever, then back",
        "100 % delivered, within the schedule",
        in_tests("tests/unit/test_webhook_deliveries.py", "", "{passed} tests of the schedule pass"),
    ),
    row(
        17,
        "SIGTERM and restarts under load",
        "0 requests dropped, exit within 10 s when idle",
        in_tests(
            "tests/integration/process/test_workers.py",
            "under_load or ten_seconds",
            "0 dropped: 2 stops and 2 restarts under load, 1 stop when idle ({passed} tests)",
        ),
    ),
    row(
        18,
        "Half an hour at 100 requests a second",
        "memory grows < 5 %, connections constant, 0 x 5xx",
        Noted(
            ".venv/bin/python -m tests.scorecard.steady",
            "steady",
            "{minutes} min at {rate}/s: memory {growth}, connections {connections}, "
            "{faults} of {requests} answered otherwise than by success",
        ),
    ),
    row(
        19,
        "slowhttptest: 3 modes x 500 connections",
        "service available throughout",
        Run(
            "tests.scorecard.slow_clients",
            "{good} of {all} probes answered",
            r"available: (?P<good>[0-9]+) of (?P<all>[0-9]+) probes",
        ),
    ),
    row(
        20,
        "Backup and restore; rolling upgrade and back",
        "invariants hold, 0 requests fail",
        in_tests("tests/integration/store/test_backup.py", "", "{passed} restores are sound by `payagg doctor`"),
        Written(
            "make upgrade-test",
            "docs/operating/upgrade.md",
            r"(?P<paid>[0-9]+) payments were acknowledged as paid and all of them are",
            "{paid} payments acknowledged, 0 lost, 0 requests failed",
        ),
    ),
    row(
        21,
        "Mutants of the money's code",
        ">= 90 % killed, survivors explained",
        Written(
            "make mutants",
            "docs/mutants.md",
            r"(?P<words>[0-9]+ of [0-9]+) are killed \((?P<share>[0-9]+%)",
            "{words} ({share})",
        ),
        Written(
            "make planted",
            "docs/planted-defects.md",
            r"(?P<caught>[0-9]+) of (?P<all>[0-9]+) are caught",
            "planted defects: {caught} of {all} caught",
        ),
    ),
    row(
        22,
        "Coverage of the money's code by its own unit tests, with branches",
        "100 % of state machine, access, webhook verification",
        Written(
            "make coverage",
            "docs/uncovered.md",
            r"with branches:\s+(?P<share>[0-9.]+ %)",
            "{share} of 25 modules; what is not run is named",
        ),
    ),
    row(
        23,
        "Scanners that we did not write",
        "0 high, 0 errors, axe 0 violations",
        *(
            Run(f"tests.scorecard.scanners {name}", f"{name}: " + "{found}", rf"{name}: (?P<found>[0-9]+ .+)", 900)
            for name in ("bandit", "semgrep", "wapiti", "sqlmap")
        ),
        in_tests(
            "tests/interface/test_lint.py", "", "Spectral with OWASP's rules and Redocly: 0 errors ({passed} tests)"
        ),
        in_tests(
            "tests/integration/browser/test_browser_axe.py", "", "axe: 0 violations in {passed} states of the page"
        ),
    ),
    row(
        24,
        "Secrets in the repository, and in logs and answers",
        "0",
        Run("tests.scorecard.scanners secrets", "{found}", r"detect-secrets: (?P<found>.+)"),
        in_tests(
            "tests/integration/http/test_http_logs.py tests/unit/test_logs.py tests/interface/test_crawler.py",
            "",
            "0 canaries in logs and answers ({passed} tests)",
        ),
    ),
    row(
        25,
        "Fuzzing of what reads strangers' bytes",
        "0 crashes, 30 s each (5 min at night)",
        Noted(
            "make atheris",
            "atheris",
            "{broken} of {targets} targets broken in {inputs:,} inputs, {seconds} s each",
        ),
    ),
)
