"""A search for illegal histories, over the rules alone or over a store."""

from payagg.extras import needing

with needing("testing", "payagg.testing.state_machine"):
    import hypothesis  # noqa: F401 - the search is its
