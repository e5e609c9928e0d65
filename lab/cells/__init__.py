"""Three cells and a router on loopback, under load."""
