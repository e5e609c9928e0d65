"""Faults at random moments and long loads: whatever was acknowledged is paid once, settled and told."""
