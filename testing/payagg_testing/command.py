"""The `payagg-testing` command: whether a service keeps the interface, and whether a receiver is fit for webhooks.

Exit status 0: nothing is broken; 1: something is; 2: wrong usage, or nobody answers.
"""

import argparse
import os
import sys
from collections.abc import Sequence

import httpx

from payagg.domain.signing import secret_key
from payagg_testing.conformance.access import OPTIONS, AccessError, ServiceAccess
from payagg_testing.conformance.assumptions import ASSUMPTIONS
from payagg_testing.conformance.over import WORDS, open_target
from payagg_testing.conformance.receiver import check_receiver
from payagg_testing.conformance.run import MACHINES, Effort, MachineVerdict, coverage, run_machine
from payagg_testing.conformance.statements import SAYS, Coverage
from payagg_testing.state_machine.model import CARDS, FINAL

LEFT_SHOWN = 4
OWN_WORD = "the service's own word for an outcome of simulate, or its number for a test card"


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = _parser().parse_args(arguments)
    try:
        status = _run(chosen) if chosen.command == "run" else _receiver(chosen)
    except (AccessError, httpx.TransportError) as error:
        print(f"payagg-testing: {error}", file=sys.stderr)  # noqa: T201
        status = 2
    sys.exit(status)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="payagg-testing", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="search a service for histories that break the interface")
    where = run.add_mutually_exclusive_group(required=True)
    for name, more in OPTIONS.values():
        (where if name == "url" else run).add_argument(f"--{name}", **more)
    where.add_argument("--over", metavar="WHAT", help=f"no URL, in this process: {WORDS}")
    run.add_argument("--machine", action="append", choices=list(MACHINES), help="one of them (all)")
    run.add_argument("--histories", type=int, default=30, help="per machine (30)")
    run.add_argument("--actions", type=int, default=20, help="in one history at most (20)")
    run.add_argument("--seed", type=int, help="repeat a search")
    run.add_argument("--kinds", type=int, default=5, help="of violations, after which a machine stops (5)")
    run.add_argument(
        "--outcome", "--card", action="append", type=_word, default=[], metavar="SUCCESS=YOURS", help=OWN_WORD
    )
    run.add_argument(
        "--assumptions", action=Assumptions, nargs=0, help="list what the model assumes where the interface is silent"
    )
    run.add_argument("--strict", action="store_true", help="exit status 1 also if something was not tried or differs")
    run.add_argument("--matrix", action="store_true", help="list every statement: tried, or why not")
    receiver = commands.add_parser("receiver", help="send a webhook handler what ours may send, and what others might")
    receiver.add_argument("--url", required=True, help="where the handler listens")
    receiver.add_argument("--secret", help="its whsec_... (or WEBHOOK_SECRET in the environment)")
    receiver.add_argument("--new-secret", help="one that is being rotated in, where the handler knows both")
    receiver.add_argument("--count-url", help="answers GET with how many events were handled, as a number")
    return parser


def _word(text: str) -> tuple[str, str]:
    ours, _, theirs = text.partition("=")
    if ours not in (*FINAL, *CARDS) or not theirs:
        raise argparse.ArgumentTypeError(f"not {' nor '.join(f'{ours}=YOURS' for ours in (*FINAL, *CARDS))}: {text}")
    return ours, theirs


class Assumptions(argparse.Action):
    """As --help: it needs nothing else, and ends there."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print("\n".join(ASSUMPTIONS))  # noqa: T201
        parser.exit()


def _run(chosen: argparse.Namespace) -> int:
    verdicts: list[MachineVerdict] = []
    if chosen.over is not None:
        target = open_target(chosen.over)
    else:
        target = ServiceAccess.of(lambda name: vars(chosen)[name.replace("-", "_")]).open_target()
    target.words = dict(chosen.outcome)
    effort = Effort(chosen.histories, chosen.actions, chosen.seed, kinds=chosen.kinds)
    try:
        for name in chosen.machine or MACHINES:
            verdicts.append(run_machine(name, target, effort))
            _tell(verdicts[-1])
        _tell_what_was_tried(coverage(verdicts), chosen.matrix)
        if chosen.url is not None and target.left_behind:
            _tell_what_stays(target.left_behind)
    finally:
        target.close()
    if all(verdict.skipped for verdict in verdicts):
        raise AccessError("nothing was tried: give tokens or keys")
    is_broken = any(verdict.breaks for verdict in verdicts)
    is_whole = not coverage(verdicts).missing and not any(verdict.violations for verdict in verdicts)
    return 1 if is_broken or (chosen.strict and not is_whole) else 0


def _tell_what_was_tried(told: Coverage, whole: bool) -> None:
    """Never a green word for what was not looked at."""
    tried = sum(why is None for why in told.reasons.values())
    print(f"Tried {tried} of {len(told.reasons)} statements, routes and codes of the interface.")  # noqa: T201
    listed = told.reasons if whole else told.missing
    for name, why in listed.items():
        print(f"  {'tried' if why is None else 'NOT TRIED':9} {_title(name)}{f': {why}' if why else ''}")  # noqa: T201


def _title(statement: str) -> str:
    return f"{statement} {SAYS[statement]}" if statement in SAYS else statement


def _tell(verdict: MachineVerdict) -> None:
    print(f"{verdict.machine:12} {verdict.requests:6} requests {verdict.seconds:7.1f} s  {verdict.words}")  # noqa: T201
    for violation in verdict.violations:
        print(violation)  # noqa: T201
    if verdict.violations:
        print(f"Search again with --machine {verdict.machine} --seed {verdict.seed}.")  # noqa: T201


def _tell_what_stays(left_behind: Sequence[str]) -> None:
    more = len(left_behind) - LEFT_SHOWN
    shown = [*left_behind[:LEFT_SHOWN], *([f"{more} more"] if more > 0 else [])]
    print(f"What stays there: {'; '.join(shown)}.")  # noqa: T201


def _receiver(chosen: argparse.Namespace) -> int:
    secret = chosen.secret or os.environ.get("WEBHOOK_SECRET")
    if not secret:
        raise AccessError("the secret is missing: --secret, or WEBHOOK_SECRET in the environment")
    for one in filter(None, (secret, chosen.new_secret)):
        try:
            secret_key(one)
        except ValueError:
            raise AccessError("a secret is `whsec_` and base64, as the endpoint's creation showed it") from None
    findings = check_receiver(chosen.url, secret, new_secret=chosen.new_secret, count_url=chosen.count_url)
    for finding in findings:
        print(finding)  # noqa: T201
    return 1 if any(finding.fault for finding in findings) else 0


if __name__ == "__main__":
    main()
