"""What the parts share: places to run in, processes, buyers, ways to kill, and the count of what was lost."""
