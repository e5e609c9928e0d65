"""A search for illegal histories, over the rules alone or over a service."""
