"""A process of payagg that may call providers and merchants on loopback.

Its arguments: `api`, `worker` or `both`; the port; the database URL.
"""

import os
import sys

import uvloop

from payagg.entrypoints.process.http_server import listen
from payagg.entrypoints.process.logs import configure_logs
from payagg.entrypoints.process.server import run_process
from payagg.entrypoints.settings import read_settings

if __name__ == "__main__":
    configure_logs()
    role, port, url = sys.argv[1:]
    settings = read_settings(os.environ, dev=True)
    listener = None if role == "worker" else listen("127.0.0.1", int(port))
    uvloop.run(run_process(settings, url, listener, with_worker=role != "api"))
