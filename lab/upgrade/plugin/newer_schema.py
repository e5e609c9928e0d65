"""A pytest plugin for the previous release's tests: their databases get the schema of this one.

Loaded by its name from this folder. PAYAGG_TEST_NEWER names the Python and the source folder of this release.
"""

import os
import subprocess

from payagg.adapters.postgres.migrations import upgrade

PYTHON, SOURCE = os.environ["PAYAGG_TEST_NEWER"].split(os.pathsep)


def migrate(database_url: str) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PAYAGG_")}
    environ |= {"PYTHONPATH": SOURCE, "PAYAGG_DATABASE_URL": database_url}
    subprocess.run([PYTHON, "-m", "payagg", "migrate"], check=True, stdout=subprocess.DEVNULL, env=environ)


upgrade.migrate = migrate  # type: ignore[assignment]
