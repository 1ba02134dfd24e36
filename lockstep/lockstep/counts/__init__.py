"""Counts what accesses cost: sectors and wavefronts, their totals, and the least that compiled code costs."""
