"""How many connections a serving process lets in, by what the system lets it open."""

import subprocess
import sys

import pytest

from payagg.entrypoints.process.http_server import FILES_KEPT

SCRIPT = """
import resource, sys
soft, hard = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
from payagg.entrypoints.process.http_server import connections_max
print(connections_max(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(
    ("soft", "hard", "connections", "raised"),
    [(256, 4096, 4096 - FILES_KEPT, 4096), (1024, 1024, 512, 1024)],
)
def test_the_soft_limit_is_raised_and_some_files_are_kept(soft: int, hard: int, connections: int, raised: int) -> None:
    command = [sys.executable, "-c", SCRIPT, str(soft), str(hard)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert printed.split() == [str(connections), str(raised)]
