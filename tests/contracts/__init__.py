"""What every store and every provider adapter must keep, as classes of tests."""
