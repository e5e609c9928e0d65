"""`python -m payagg.testing` is the `payagg-testing` command."""

import sys

from payagg.extras import line_about

try:
    from payagg.testing.command import main
except ModuleNotFoundError as error:
    line = line_about(error, "payagg-testing", "testing")
    if line is None:
        raise
    sys.exit(line)

if __name__ == "__main__":
    main()
