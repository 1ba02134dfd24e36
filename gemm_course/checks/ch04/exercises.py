"""Exercise 04.4."""

from gemm_course.checks.ch04.in_registers import prove_strip
from gemm_course.checks.core import exercise


@exercise(
    "04.4",
    start="this is still the kernel as it was handed out. Which loops over `acc` turn a number of times that "
    "nobody knows beforehand?",
    hints=(
        "A register has no address. The compiler must see, for every access to `acc`, which element it is: "
        "it writes the loop out, `acc[0]`, `acc[1]`, ...",
        "It can write out `range(R)`, as R is a constant of the factory. It cannot write out `range(count)`.",
        "Let every loop turn R times, and keep what does not exist out with a guard inside: "
        "`if first + 32 * i < n:`.",
    ),
)
def in_registers(make_strip):
    """A factory (R) of kernels (n, k, x, A, y) that compute y = x A, R columns a thread, in registers."""
    return prove_strip(make_strip)
