"""One module for each class of attack.

A function whose name starts with `attack_` is found by itself. It gets the Target, loads it for some seconds at most,
on loopback alone, and returns an AttackResult; its docstring says what it does. The row of the table is named after the
module and the function. What counts as success is told by the product's answers or by what its process used, never by
the time an answer took. `tests/integration/process/test_attacks.py` tries each against a server without cures, where
it must succeed.
"""
