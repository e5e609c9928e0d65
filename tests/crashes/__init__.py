"""What a crash at each step of a payment leaves: `make crash-matrix` tries each with each kind of crash."""
