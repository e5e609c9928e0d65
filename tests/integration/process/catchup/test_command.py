"""`payagg catch-up` on a database of the test's own."""

from tests.support.postgres_world import execute
from tests.support.processes import SECRETS, Command, one_line


def test_catching_up_after_a_restore_says_what_it_asked_about(database_url: str, run: Command) -> None:
    made = run("catch-up", "--since", "2026-01-31T12:00:00Z", **SECRETS)
    assert made.returncode == 0, made.stderr
    assert made.stdout.splitlines() == [
        "0 charges that were known are asked about as soon as a worker runs.",
        "Asking each provider 20 times about each payment that was open, 50 times a second ...",
        "0 payments were open: 0 charges of theirs were unknown here, and are no more.",
    ]
    entries = execute(database_url, "SELECT object_id, changes FROM audit WHERE realm = 'cli' ORDER BY id")
    begun, (object_id, changes) = entries
    assert begun == (object_id, {})
    assert (object_id, changes["found"]) == ("2026-01-31T12:00:00+00:00", {"before": None, "after": 0})
    ahead = run("catch-up", "--since", "2999-01-01T00:00:00Z", **SECRETS)
    assert "since: Must not lie ahead." in one_line(ahead)
