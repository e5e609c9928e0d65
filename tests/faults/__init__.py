"""What a failing network between us and others leaves: `make faults` tries each fault in each place."""
