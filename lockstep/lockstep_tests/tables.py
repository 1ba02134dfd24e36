"""Tables of a launch's counts, compared with the scalar interpreter's and with counts without running."""

from lockstep import emulate
from lockstep_tests.scalar import Launch

FIGURES = {
    "global": ["requests", "lanes", "bytes", "sectors", "lines"],
    "shared": ["requests", "lanes", "bytes", "wavefronts"],
    "local": ["requests", "lanes", "bytes"],
}

COLUMNS = ["line", "space", "op", "array", "bits", "site", "requests", "lanes", "bytes"]
COLUMNS += ["sectors", "lines", "wavefronts", "ideal_wavefronts"]


def emulated_table(report):
    """The counts of a report, summed over the places that share a line, space, op, array and width."""
    keys = ["line", "space", "op", "array", "bits"]
    summed = report.accesses.groupby(keys)[sorted(set().union(*FIGURES.values()))].sum()
    return {key: dict(row) for key, row in zip(summed.index, summed.to_dict("records"), strict=True)}


def compare_tables(scalar, emulated):
    assert set(scalar) == set(emulated), f"only one counts {sorted(set(scalar) ^ set(emulated))}"
    different = {}
    for key, expected in scalar.items():
        _, space, op, *_ = key
        names = ["requests", "lanes"] if op == "atomic" else FIGURES[space]
        got = {name: int(emulated[key][name]) for name in names}
        wanted = {name: expected[name] for name in names}
        if got != wanted:
            different[key] = (got, wanted)
    assert not different, "\n".join(f"{key}: {got}, not {wanted}" for key, (got, wanted) in different.items())


def run_both(kernel, grid, block, make_args, shared_bytes=0):
    """Launch in both; return (the scalar launch, its arguments, the emulator's report, its arguments)."""
    plain, emulated = make_args(), make_args()
    launch = Launch(kernel, grid, block, plain, shared_bytes).run()
    report = emulate(kernel, grid, block, *emulated, shared_bytes=shared_bytes, strict=True)
    return launch, plain, report, emulated


def table(report):
    """The counts that two reports of one launch must share."""
    frame = report.accesses[COLUMNS].fillna(0).astype({"array": str})
    return frame.sort_values(COLUMNS[:6]).reset_index(drop=True)


def arithmetic(report):
    columns = ["line", "op", "dtype", "lanes"]
    return report.arithmetic[columns].sort_values(columns).reset_index(drop=True)


def check_counts_only(kernel, grid, block, args, views, shared_bytes=0, source=""):
    """Fail unless counting without running gives what a run gives. `views`: arguments without memory."""
    full = emulate(kernel, grid, block, *args, shared_bytes=shared_bytes)
    counted = emulate(kernel, grid, block, *views, shared_bytes=shared_bytes, counts_only=True)
    ran, without = table(full), table(counted)
    assert ran.equals(without), f"{source}\nrun:\n{ran.to_string()}\ncounted:\n{without.to_string()}"
    assert arithmetic(full).equals(arithmetic(counted)), source
    assert full.barriers == counted.barriers, source
