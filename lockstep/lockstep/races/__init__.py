"""Finds accesses that nothing orders, and reads of elements that nobody has stored to."""
