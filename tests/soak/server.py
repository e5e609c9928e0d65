"""One serving process as `payagg serve` runs it, which may call providers and merchants on loopback: port and URL."""

import os
import sys

from payagg.entrypoints.process import server
from payagg.entrypoints.process.http_server import listen
from payagg.entrypoints.process.logs import configure_logs
from payagg.entrypoints.settings import read_settings

if __name__ == "__main__":
    configure_logs()
    port, url = sys.argv[1:]
    settings = read_settings(os.environ, dev=True)
    server.run(server.run_process(settings, url, listen("127.0.0.1", int(port)), with_worker=True))
