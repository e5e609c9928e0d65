"""What a crash at each step of a payment leaves."""
