"""Which accesses nothing orders, and reads of what nobody has stored."""
