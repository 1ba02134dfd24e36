"""How each kind of answer is tried: launches, kernels, factories, tables, coverage; and what it must do."""
