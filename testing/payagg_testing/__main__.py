"""`python -m payagg_testing` is the `payagg-testing` command."""

from payagg_testing.command import main

if __name__ == "__main__":
    main()
