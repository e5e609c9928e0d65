"""Faults under a cluster of Patroni while payagg takes payments, through each way to the primary."""
