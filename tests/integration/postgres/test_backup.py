"""What docs/operating says of backups and of the role, done as it is written there."""

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from payagg.adapters.postgres.embedded.data_folder import MAJOR, find_package
from payagg.adapters.postgres.store import PostgresStore
from tests.support.assembly import services_over
from tests.support.http_world import an_api
from tests.support.machine import ROOT
from tests.support.postgres_rules import admitted_by
from tests.support.processes import environment, payagg

# The server's own programs, and the `payagg` of this environment.
PATH = os.pathsep.join(
    [str(find_package() / f"pginstall{MAJOR}" / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
)


def shell(script: str, folder: Path, **variables: str) -> str:
    done = subprocess.run(
        ["sh", "-euc", script],
        check=False,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(**variables) | {"PATH": PATH},
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def steps(page: str, heading: str) -> str:
    """The commands under a heading of a guide."""
    text = (ROOT / "docs" / "operating" / page).read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert blocks, f"{page} has no commands under {heading}"
    return "\n".join(blocks)


@pytest.mark.release
async def test_a_backup_is_restored_as_the_guide_says_and_the_doctor_finds_it_sound(
    database_url: str, store: PostgresStore, postgres: str, tmp_path: Path
) -> None:
    async with an_api(services_over(store)) as api:
        shop = await api.open_shop()
        reference = (await api.initiate(shop))["reference"]
        outcome = {"outcome": "SUCCESS"}
        await api.client.post(f"/payments/{reference}/simulate", headers=shop.as_sandbox, json=outcome)
    restored = postgres.replace("/payagg?", "/payagg_restored?")
    urls = {"PAYAGG_DATABASE_URL": database_url, "ADMIN_URL": postgres, "RESTORED_URL": restored}
    shell(steps("backup.md", "Backup"), tmp_path, **urls)
    said = shell(steps("backup.md", "Restore"), tmp_path, **urls)
    assert "BROKEN" not in said
    assert "0 anomalies." in said
    story = payagg("explain", reference, PAYAGG_DATABASE_URL=restored)
    assert "SUCCESS" in story.stdout
    with psycopg.connect(database_url) as before, psycopg.connect(restored) as after:
        triggers = "SELECT tgrelid::regclass::text, tgname FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1, 2"
        assert after.execute(triggers).fetchall() == before.execute(triggers).fetchall() != []
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP DATABASE payagg_restored")


def test_a_role_that_owns_its_database_and_nothing_else_is_enough(postgres: str, tmp_path: Path) -> None:
    folder = parse_qs(urlsplit(postgres).query)["host"][0]
    password = tmp_path / "password"
    password.write_text("it's a \\ word `of` $ours\n")
    script = f"sh {ROOT}/deploy/database-role.sh modest"
    admin = {"PGHOST": folder, "PGUSER": "postgres", "PGDATABASE": "payagg", "ROLE_PASSWORD_FILE": str(password)}
    assert shell(script, tmp_path, **admin) == ""
    own = postgres.replace("//payagg@/payagg?", "//modest@/modest?")
    with admitted_by(postgres, "local modest modest trust") as connection:
        try:
            may = connection.execute(
                "SELECT rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls,"
                " rolpassword LIKE 'SCRAM%' FROM pg_authid WHERE rolname = 'modest'"
            ).fetchone()
            assert may == (False, True)
            assert payagg("migrate", PAYAGG_DATABASE_URL=own).returncode == 0
            told = payagg("doctor", PAYAGG_DATABASE_URL=own)
            assert told.returncode == 0, told.stderr
            assert "modest at " in told.stdout
        finally:
            connection.execute("DROP DATABASE modest WITH (FORCE)")
            connection.execute("DROP ROLE modest")
