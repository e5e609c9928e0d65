"""The part `failover` runs for minutes on programs of its own: here what can be said of it without them."""

import yaml

from lab.failover.cluster import CONFIG
from payagg.adapters.postgres.connections import CONNECT_WAIT, TCP, TIMEOUTS
from payagg.adapters.postgres.embedded.data_folder import LOCALE
from payagg.adapters.postgres.pool import ANSWER_WAIT
from payagg.adapters.postgres.primary import TRUSTED
from payagg.application.deadline import REQUEST_SECONDS


def test_every_wait_for_the_database_ends_before_another_primary_can_have_taken_over() -> None:
    settings = yaml.safe_load(CONFIG.read_text())["bootstrap"]["dcs"]
    # The lock was renewed as long ago as a round may take, when its holder is frozen.
    replaced_after = settings["ttl"] - settings["loop_wait"]
    assert replaced_after > TRUSTED + ANSWER_WAIT
    assert REQUEST_SECONDS < ANSWER_WAIT
    assert CONNECT_WAIT < ANSWER_WAIT
    assert max(TIMEOUTS["statement_timeout"], TIMEOUTS["lock_timeout"]) < ANSWER_WAIT * 1000
    assert TCP["keepalives_idle"] + TCP["keepalives_interval"] * TCP["keepalives_count"] < replaced_after
    assert TCP["tcp_user_timeout"] <= ANSWER_WAIT * 1000
    # Patroni's own rule.
    assert settings["loop_wait"] + 2 * settings["retry_timeout"] <= settings["ttl"]


def test_its_databases_know_letters_as_our_own_does() -> None:
    """With the locale C alone, an address with É is not found as é: its payer would not be erased."""
    options = yaml.safe_load(CONFIG.read_text())["bootstrap"]["initdb"]
    own = {f"--{name}={value}" for one in options if isinstance(one, dict) for name, value in one.items()}
    assert own == set(LOCALE)
