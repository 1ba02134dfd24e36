"""What accesses cost: sectors, wavefronts, totals of them, and the least that compiled code costs."""
