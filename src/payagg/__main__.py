"""`python -m payagg` is the `payagg` command."""

from payagg.entrypoints.cli.main import main

if __name__ == "__main__":
    main()
