"""`payagg reconcile`: a provider's own list or statement beside our payments."""

import argparse
import asyncio
import sys
from pathlib import Path

from payagg.domain.errors import invalid
from payagg.entrypoints.cli.database import database
from payagg.entrypoints.cli.operators import operator, say
from payagg.entrypoints.settings import Settings

SHOWN = 50  # findings; the CSV has all of them
STATEMENT_MAX = 256 * 1024 * 1024  # bytes
BAR = 30  # characters


def reconcile(options: argparse.Namespace, settings: Settings) -> int:
    from payagg.domain.reconciliation import ReconciliationFinding, ReconciliationRun
    from payagg.domain.values import Environment
    from payagg.entrypoints.bootstrap import running

    statement = None if options.file is None else _content(options.file)

    async def act(url: str) -> tuple[ReconciliationRun, list[ReconciliationFinding]]:
        async with running(settings, url) as services:
            return await services.reconciliation_runs.reconcile(
                options.gateway,
                Environment(options.environment or "LIVE"),
                options.first,
                options.last or options.first,
                by=operator(),
                statement=statement,
                progress=_draw if sys.stderr.isatty() else lambda *_: None,
            )

    with database(settings) as url:
        run, findings = asyncio.run(act(url))
    say(f"{run.id}: {run.gateway} {run.environment.value}, {run.first_day} to {run.last_day}, by {run.source}.")
    for bucket, total in sorted(run.totals.items()):
        ours, theirs = _naira(total["ours"]), _naira(total["theirs"])
        said = f"{total['payments']} payments of {ours} here, {total['lines']} lines of {theirs} there"
        say(f"{bucket:14}  {said}")
    for one in findings[:SHOWN]:
        kind = one.line_kind.value if one.line_kind is not None else None
        sides = f"{_naira(one.ours)} here, {_naira(one.theirs)} there"
        facts = " ".join(map(_or_dash, (one.reference, kind, one.line_id)))
        say(f"        {one.bucket.value} {facts} {sides} {one.effect or ''}")
    if len(findings) > SHOWN:
        say(f"        and {len(findings) - SHOWN} more: GET /api/v1/admin/reconciliations/{run.id}/findings.csv")
    return 0


def _or_dash(value: object) -> str:
    return "-" if value is None else str(value)


def _naira(kobo: int | None) -> str:
    return "-" if kobo is None else f"{kobo // 100:,}.{kobo % 100:02d} NGN"


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(STATEMENT_MAX + 1)
    except OSError as error:
        raise invalid("file", f"Cannot be read: {error.strerror}.") from None
    if len(content) > STATEMENT_MAX:
        raise invalid("file", f"Must be at most {STATEMENT_MAX >> 20} MiB.")
    return content


def _draw(kind: str, done: int, total: int | None) -> None:
    """One line of stderr, drawn over and over."""
    share = min(done / total, 1.0) if total else 0.0
    bar = "#" * round(share * BAR)
    said = f"{done:,} of {total:,}" if total is not None else f"{done:,}"
    end = "\n" if total is not None and done >= total else ""
    print(f"\r{kind.lower():8} [{bar:{BAR}}] {said}", end=end, file=sys.stderr, flush=True)  # noqa: T201
