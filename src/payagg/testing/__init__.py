"""Shipped test equipment: strategies, state machines, contract suites, clocks, fake providers.

`pip install 'payagg[testing]'` has what it needs; builders and clocks need the domain alone.
"""
