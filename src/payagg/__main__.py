"""`python -m payagg` is the `payagg` command."""

from payagg.entrypoints.cli import main

if __name__ == "__main__":
    main()
