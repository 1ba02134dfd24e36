"""How a Tensor Core of an H200 adds: it cuts bits off where IEEE 754 would round.

The products are exact. With the accumulator they are brought to the exponent of the largest of them, 25 bits
behind its first, and what is smaller is cut off. Their sum is then cut to a float32. Of 16 products at once,
as in `mma.sync` m16n8k16; other GPUs keep other numbers of bits.
"""

import numpy as np

KEPT = 25  # bits behind the first of the largest term


def adds(c, products) -> np.ndarray:
    """c + products, added along their first axis, as float32.

    c: the accumulators, of the shape of one product. products: exact, in float64.
    """
    terms = np.concatenate([np.asarray(c, np.float64)[None], np.asarray(products, np.float64)])
    _, exponent = np.frexp(abs(terms).max(axis=0))
    unit = np.ldexp(1.0, exponent - 1 - KEPT)
    return _cut(np.trunc(terms / unit).sum(axis=0) * unit)


def _cut(x: np.ndarray) -> np.ndarray:
    """The nearest float32 that is not further from zero."""
    nearest = np.float32(x)
    return np.where(abs(nearest.astype(np.float64)) > abs(x), np.nextafter(nearest, np.float32(0)), nearest)
