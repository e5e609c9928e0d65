"""The product's server without its worker, allowed to reach a provider on loopback as `dev` is."""

import argparse
import os
from dataclasses import replace

from payagg.entrypoints.process import server
from payagg.entrypoints.process.http_server import listen
from payagg.entrypoints.process.logs import configure_logs
from payagg.entrypoints.settings import read_settings

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    listener = listen("127.0.0.1", parser.parse_args().port)
    settings = replace(read_settings(os.environ), dev=True)
    configure_logs()
    server.run(server.run_process(settings, os.environ["PAYAGG_DATABASE_URL"], listener, with_worker=False))
