"""`python -m payagg.testing` is the `payagg-testing` command."""

import sys

try:
    from payagg.testing.command import main
except ModuleNotFoundError as error:
    sys.exit(f"payagg-testing: {error.name} is missing: pip install 'payagg[testing]'")

if __name__ == "__main__":
    main()
