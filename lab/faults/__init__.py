"""What a failing network between us and others leaves."""
