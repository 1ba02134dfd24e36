"""Notebook 12: scheduling, and a kernel of one's own."""
