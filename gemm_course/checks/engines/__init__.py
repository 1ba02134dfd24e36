"""How each kind of answer is tried: launches, GEMM kernels, factories, tables, coverage, and what they are held to."""
