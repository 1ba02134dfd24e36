"""Adds as a Tensor Core of an H200 does, which cuts bits off where IEEE 754 would round.

The products are exact. All products and the accumulator are aligned to the largest of them. Each keeps its
bits down to 25 places behind the largest one's first bit, and the rest is cut off. Their sum is then cut to a
float32. This holds for 16 products at once, as in `mma.sync` m16n8k16. Other GPUs keep other numbers of bits.
"""

import numpy as np

# Each term keeps its bits down to this many places behind the first bit of the largest term.
KEPT = 25


def adds(c, products) -> np.ndarray:
    """Return the sum of c and of the products along their first axis, as float32.

    ``c`` holds the accumulators, with the shape of products[0]. ``products`` are exact, in float64.
    """
    terms = np.concatenate([np.asarray(c, np.float64)[None], np.asarray(products, np.float64)])
    _, exponent = np.frexp(abs(terms).max(axis=0))
    unit = np.ldexp(1.0, exponent - 1 - KEPT)
    return _cut(np.trunc(terms / unit).sum(axis=0) * unit)


def _cut(x: np.ndarray) -> np.ndarray:
    """Return the float32 nearest to x among those that are not further from zero."""
    nearest = np.float32(x)
    return np.where(abs(nearest.astype(np.float64)) > abs(x), np.nextafter(nearest, np.float32(0)), nearest)
