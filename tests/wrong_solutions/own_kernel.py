"""Wrong answers that people really give to the exercises of `own_kernel`."""

from tests.wrong_solutions.altering import altered, passing

# ---- fused_epilogue ----------------------------------------------------------------------------------------

COLUMN, EXTRA = "if col < n:\n            extra", "extra = bias[col]"
STORED = "C[row0 + i, col] = max(acc[i] + extra, float32(0))"
ROWS = "for i in range(TM):\n                if row0 + i < m:\n                    C"

FUSED_EPILOGUE = altered(
    "fused_epilogue",
    {
        "product_alone": ("Neither bias nor ReLU", (STORED, "C[row0 + i, col] = acc[i]")),
        "relu_too_early": (
            "ReLU comes too early",
            (STORED, "C[row0 + i, col] = max(acc[i], float32(0)) + extra"),
        ),
        "relu_forgotten": ("ReLU is missing", (STORED, "C[row0 + i, col] = acc[i] + extra")),
        "bias_forgotten": ("no bias is added", ("acc[i] + extra", "acc[i]")),
        "smaller_one": ("clears the positive ones", ("= max(", "= min(")),
        "absolute_value": ("lose their sign", (STORED, "C[row0 + i, col] = abs(acc[i] + extra)")),
        "bias_subtracted": ("subtracted", ("acc[i] + extra", "acc[i] - extra")),
        "bias_multiplied": ("multiplied", ("acc[i] + extra", "acc[i] * extra")),
        "bias_in_every_step": (
            "each step along k",
            (
                "                    acc[i] += A[row0 + i, p] * b",
                "                    acc[i] += A[row0 + i, p] * b + (bias[col] if col < n else float32(0))",
            ),
            ("acc[i] + extra", "acc[i]"),
        ),
        "first_bias_for_all": ("bias of column 0", (EXTRA, "extra = bias[0]")),
        "bias_of_the_thread": ("first block's columns", (EXTRA, "extra = bias[cuda.threadIdx.x]")),
        "bias_of_the_row": (
            "indexed by the row",
            (EXTRA, "extra = bias[min(row0, n - 1)]"),
            ("acc[i] + extra", "acc[i] + bias[min(row0 + i, n - 1)]"),
        ),
        "one_result_only": (
            "loop over `i`",
            (ROWS, "for i in range(1):\n                if row0 + i < m:\n                    C"),
        ),
        "rows_apart": (
            "belongs in row `row0 + i`",
            (
                "row0 + i < m:\n                    C[row0 + i",
                "row0 + i * TM < m:\n                    C[row0 + i * TM",
            ),
        ),
        "positive_ones_only": (
            "Only positive results are stored",
            (STORED, "if acc[i] + extra > 0:\n                        C[row0 + i, col] = acc[i] + extra"),
        ),
        "column_not_guarded": (
            "Columns from n on",
            (COLUMN, "if True:\n            extra"),
            (EXTRA, "extra = bias[min(col, n - 1)]"),
        ),
        "second_pass": (
            "stored and read again",
            (
                STORED,
                "C[row0 + i, col] = acc[i]\n                    "
                "C[row0 + i, col] = max(C[row0 + i, col] + extra, float32(0))",
            ),
        ),
        "stored_twice": (
            "stored more than once",
            (STORED, f"C[row0 + i, col] = acc[i]\n                    {STORED}"),
        ),
        "bias_read_again_and_again": ("again and again", ("acc[i] + extra", "acc[i] + bias[col]")),
        "in_float64": ("float32(0)", ("acc[i] + extra, float32(0)", "np.float64(acc[i]) + extra, 0.0")),
    },
)

# ---- raised_roof -------------------------------------------------------------------------------------------

TILES = '"BM": 128, "BN": 128, "BK": 16, "TM": 16, "TN": 8'
BARRIER = '("            cuda.syncthreads()\\n            k0", "            k0"),\n    '
REGISTERS = '("registers_for(t.TM, t.TN)", "128"),\n    '
FIRST = 'mine = own_with(\n    "thread_tiled_2d",\n    '
STEP = '("for p in unroll(range(BK))", "for p in range(BK)"),\n    '
RULES = '("    yield from fits_registers(t.TM, t.TN)\\n", ""),\n    '

RAISED_ROOF = altered(
    "raised_roof",
    {
        "shared_memory": (
            "more than 48 KB",
            (TILES, '"BM": 256, "BN": 256, "BK": 32, "TM": 16, "TN": 8'),
        ),
        "too_many_results": (
            "more registers than a thread can have",
            (TILES, TILES.replace('"TN": 8', '"TN": 16')),
        ),
        "no_whole_passes": ("`requirements`", (TILES, TILES.replace('"BK": 16', '"BK": 3'))),
        "reads_as_before": (
            "its roof is too low",
            (TILES, TILES.replace('16, "TM": 16, "TN": 8', '32, "TM": 16, "TN": 4')),
        ),
        "barrier_gone": ("There is a race", (FIRST, FIRST + BARRIER)),
        "capped": ("asks for room for", (FIRST, FIRST + REGISTERS)),
        "over_255": (
            "more than 255 registers",
            (FIRST, FIRST + RULES),
            (TILES, '"BM": 256, "BN": 128, "BK": 16, "TM": 16, "TN": 16'),
        ),
        "not_aligned": ("`alignment=16,`", ("    alignment=16,\\n", "")),
        "no_guard": (
            "outside of a matrix",
            (" if k0 + r < k and col0 + c < n else zeros)", ")"),
        ),
        "column_of_a_float": (
            "begins at no multiple of 16 bytes",
            ("tid % (BN // 4) * 4", "tid % (BN // 4)"),
        ),
        "passes_of_floats": ("store the same element", ("tid // (BN // 4)", "tid // BN")),
        "rows_forgotten": (
            "outside of Bs, a tile",
            ("THREADS // BK, THREADS // (BN // 4)  #", "THREADS // BK, THREADS // BN  #"),
        ),
        "zeros_for_all": (
            "no longer right",
            ("if k0 + r < k and col0 + c < n else zeros)", "if k0 + r < k and col0 + c + 3 < n else zeros)"),
        ),
        "a_name_forgotten": ("cannot run as it is", ("load4, store4, u32", "load4, u32")),
        "steps_in_a_loop": ("its roof is too low", (FIRST, FIRST + STEP)),
    },
) | passing(
    "raised_roof",
    {"a_name": ("not a name", '"mine.py"'), "of_the_ladder": ("stage of the ladder", 'LADDER["vectorized"]')},
)

WRONG = {"fused_epilogue": FUSED_EPILOGUE, "raised_roof": RAISED_ROOF}
