"""The emulator finds every broken kernel of the corpus at its line, and accuses no sound one."""

from collections import Counter

import pytest

from lockstep import EmulatorError, emulate
from lockstep_tests import corpus

BROKEN = corpus.cases("broken")
SOUND = corpus.cases("sound")
DATA_DEPENDENT = {
    "collatz_loops_as_long_as_the_data_say",
    "device_functions_with_early_returns_and_a_tuple",
    "gather_that_skips_a_sentinel",
    "guard_and_load_joined_by_and",
    "guard_and_load_joined_by_or",
    "histogram_with_atomics_at_both_levels",
    "tickets_from_an_atomic_counter",
}


def run(case, **options):
    """(report, arguments after the launch)."""
    arguments = case.make_args()
    report = emulate(
        case.kernel, case.grid, case.block, *arguments, shared_bytes=case.shared_bytes, **options
    )
    return report, arguments


def errors(report):
    return [finding for finding in report.findings if finding.severity == "error"]


def listed(findings):
    """Findings as a list to read in a failed test."""
    return [(finding.kind, finding.line, finding.array, finding.message) for finding in findings]


def test_the_corpus_covers_every_kind_several_times():
    kinds = Counter(case.kind for case in BROKEN.values())
    assert set(kinds) == corpus.KINDS
    assert min(number for kind, number in kinds.items() if kind != "barrier_in_branch") >= 4
    assert len(SOUND) >= 30
    assert sum(bool(case.blocks) for case in BROKEN.values()) >= 10, "findings that depend on the block"


@pytest.mark.parametrize("name", BROKEN)
def test_broken_kernel_is_found_at_its_line(name):
    case = BROKEN[name]
    report, _ = run(case)
    places = {(kind, mark.line) for mark in case.marks for kind in mark.kinds}
    hits = [finding for finding in report.findings if (finding.kind, finding.line) in places]
    assert hits, f"expected {case.kind} at {sorted(places)}, found {listed(report.findings)}"
    assert case.kind in corpus.ADVICE or not report.ok
    false = [finding for finding in errors(report) if finding not in hits]
    assert not false, f"false alarms {listed(false)}"
    check_every_mark(case, hits)
    for finding in hits:
        check_details(case, finding)


def check_every_mark(case, hits):
    """Each marked line is found; of several divergent barriers, one is enough."""
    for mark in case.marks:
        at_mark = [hit for hit in hits if hit.line == mark.line]
        assert at_mark or case.kind == "barrier_divergence", f"line {mark.line} is not found"
        if mark.array and at_mark:
            assert mark.array in {hit.array for hit in at_mark}, listed(at_mark)


def check_details(case, finding):
    assert finding.message.strip(), finding
    assert finding.severity == ("advice" if finding.kind in corpus.ADVICE else "error")
    assert finding.count >= 1
    if finding.kind not in ("float64_arithmetic", "dynamic_local_index"):
        assert len(finding.block) == 3, finding
        assert finding.threads and all(len(thread) == 3 for thread in finding.threads), finding
        check_threads_exist(case, finding)
    if finding.kind in (
        "out_of_bounds",
        "shared_race",
        "global_race",
        "uninitialised_read",
        "misaligned_access",
    ):
        assert isinstance(finding.element, tuple), finding
    if case.blocks:
        assert finding.block in case.blocks, f"{finding.block} is not at fault, but one of {case.blocks}"


def check_threads_exist(case, finding):
    sizes = (case.block,) if isinstance(case.block, int) else case.block
    sizes = (*sizes, 1, 1)[:3]
    for thread in finding.threads:
        assert all(0 <= index < size for index, size in zip(thread, sizes, strict=True)), finding


@pytest.mark.parametrize("name", [name for name, case in BROKEN.items() if case.kind in corpus.ADVICE])
def test_advice_is_given_at_the_marked_lines_only(name):
    case = BROKEN[name]
    report, _ = run(case)
    given = {finding.line for finding in report.findings if finding.kind == case.kind}
    assert given == {mark.line for mark in case.marks if case.kind in mark.kinds}, listed(report.findings)
    assert report.ok


@pytest.mark.parametrize("name", SOUND)
def test_sound_kernel_is_not_accused_and_computes_the_right_numbers(name):
    report, arguments = run(SOUND[name])
    assert not errors(report), listed(errors(report))
    assert report.ok
    corpus.compare(SOUND[name], arguments)


def test_float32_kernels_of_the_sound_corpus_get_no_advice_on_float64():
    for name in ("saxpy_in_blocks_of_a_warp_and_a_half", "tiled_product_of_odd_sizes", "unsigned_indices"):
        report, _ = run(SOUND[name])
        assert not [finding for finding in report.findings if finding.kind == "float64_arithmetic"], name


@pytest.mark.parametrize("name", SOUND)
def test_counting_without_running_counts_the_same(name):
    case = SOUND[name]
    full, _ = run(case)
    before = case.make_args()
    try:
        counted, after = run(case, counts_only=True)
    except EmulatorError as refusal:
        assert name in DATA_DEPENDENT, f"refused: {refusal}"
        return
    assert name not in DATA_DEPENDENT, "a kernel that depends on data cannot be counted without running"
    for given, left in zip(before, after, strict=True):
        assert (given == left).all(), "counting must not write"
    both = [
        frame.sort_values(list(frame.columns[:6])).reset_index(drop=True) for frame in accesses(full, counted)
    ]
    assert both[0].equals(both[1]), f"\n{both[0]}\n{both[1]}"
    assert counted.barriers == full.barriers
    assert counted.shared_bytes == full.shared_bytes


def accesses(*reports):
    """What both frames must agree on."""
    columns = ["line", "space", "op", "array", "bits", "site", "requests", "lanes", "bytes"]
    columns += ["sectors", "lines", "wavefronts", "ideal_wavefronts"]
    return [report.accesses[columns].fillna(0).astype({"array": str}) for report in reports]
