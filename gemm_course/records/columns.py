"""Defines the columns of each kind of record."""

from gemm_course.records.tables import Table

# Records write the dtypes of matrices and of accumulators like this.
SHORT_DTYPES = {"float32": "fp32", "float16": "fp16"}

ORIGIN = {
    "gpu": "text",
    "driver": "text",
    "cuda": "text",
    "numba_cuda": "text",
    "date": "text",
    "command": "text",
}

_SETTING = {
    "stage": "text",
    "dtype": "text",
    "accumulate": "text",
    "m": "whole",
    "n": "whole",
    "k": "whole",
    "tiles": "text",
}
_RESULT = {
    "milliseconds": "real",
    "tflops": "real",
    "cublas_tflops": "real",
    "ratio_to_cublas": "real",
    "triton_tflops": "real",
    "relative_error": "real",
    "registers": "whole",
    "shared_bytes": "whole",
    "local_bytes": "whole",
    "sm_clock_mhz": "whole",
    "gpu": "text",
    "driver": "text",
    "cuda": "text",
    "cublas": "text",
    "numba_cuda": "text",
    "date": "text",
    "command": "text",
}

LADDER = Table({**_SETTING, **_RESULT})
SWEEP = Table({**_SETTING, "reason": "text", **_RESULT})

ROW_LENGTHS = Table(
    {
        "stage": "text",
        "tiles": "text",
        "m": "whole",
        "n": "whole",
        "k": "whole",
        "leading_dimension": "whole",
        "milliseconds": "real",
        "tflops": "real",
        "relative_error": "real",
        "registers": "whole",
        "sm_clock_mhz": "whole",
        **ORIGIN,
    }
)

CORRECTNESS = Table(
    {
        "stage": "text",
        "tiles": "text",
        "m": "whole",
        "n": "whole",
        "k": "whole",
        "relative_error": "real",
        "cublas_error": "real",
        "verdict": "text",
        **ORIGIN,
    }
)

COMPILED = Table({"stage": "text", "tiles": "text", "seconds": "real", **ORIGIN})

SANITIZER = Table(
    {
        "stage": "text",
        "tiles": "text",
        "m": "whole",
        "n": "whole",
        "k": "whole",
        "tool": "text",
        "verdict": "text",
        "errors": "whole",
        "message": "text",
        "compute_sanitizer": "text",
        **ORIGIN,
    }
)

COUNTED = (
    "global_load_requests",
    "global_load_sectors",
    "global_store_requests",
    "global_store_sectors",
    "global_reduction_requests",
    "global_reduction_sectors",
    "global_atomic_requests",
    "global_atomic_sectors",
    "shared_load_requests",
    "shared_load_wavefronts",
    "shared_store_requests",
    "shared_store_wavefronts",
    "shared_atomic_requests",
    "shared_wavefronts",
    "shared_ideal_wavefronts",
    "async_copy_requests",
    "async_copy_sectors",
    "async_copy_wavefronts",
    "local_load_requests",
    "local_store_requests",
    "float32_fma",
    "float32_add",
    "float32_mul",
    "float64_fma",
    "float64_add",
    "float64_mul",
    "warp_instructions",
    "l2_read_sectors",
    "l2_write_sectors",
    "dram_read_bytes",
    "dram_write_bytes",
    "nanoseconds",
)
# Files from before the Tensor Core stages lack these columns.
COUNTED_OF_TENSOR_CORES = (
    "matrix_load_requests",
    "matrix_load_wavefronts",
    "mma_instructions",
    "wgmma_instructions",
    "tensor_operations_fp32_acc",
    "tensor_operations_fp16_acc",
)

COUNTERS = Table(
    {
        "case": "text",
        "kernel": "text",
        "grid": "text",
        "block": "text",
        "m": "whole",
        "n": "whole",
        "k": "whole",
        "tiles": "text",
        "dynamic_shared_bytes": "whole",
        "static_shared_bytes": "whole",
        "registers": "whole",
        "local_bytes": "whole",
        **dict.fromkeys(COUNTED, "whole"),
        **dict.fromkeys(COUNTED_OF_TENSOR_CORES, "whole"),
        **ORIGIN,
        "ncu": "text",
    },
    later=COUNTED_OF_TENSOR_CORES,
)

# These columns are the kinds of gemm_course/compiler/kinds.py.
MACHINE_INSTRUCTIONS = (
    "multiply_add",
    "tensor_core_product",
    "other_arithmetic",
    "global_load",
    "global_store",
    "asynchronous_copy",
    "shared_load",
    "shared_store",
    "atomic",
    "local_memory",
    "integer_arithmetic",
    "compare_and_select",
    "branch",
    "barrier_and_fence",
    "move",
    "other",
)
COMPILERS = ("nvvm", "nvjitlink", "nvdisasm", "numba", "numba_cuda", "python")
MACHINE_CODE = Table(
    {
        "stage": "text",
        "tiles": "text",
        "compute_capability": "text",
        "registers": "whole",
        "spilled_bytes": "whole",
        "local_bytes": "whole",
        "static_shared_bytes": "whole",
        "shared_bytes": "whole",
        "instructions": "whole",
        "loop_instructions": "whole",
        **dict.fromkeys(MACHINE_INSTRUCTIONS, "whole"),
        **dict.fromkeys((f"loop_{kind}" for kind in MACHINE_INSTRUCTIONS), "whole"),
        **dict.fromkeys(COMPILERS, "text"),
        "date": "text",
        "command": "text",
    }
)

# These columns say how busy parts of the GPU were, in percent of the most that each can do, averaged over the
# launch's clocks.
PROFILE_BUSY = (
    # A scheduler's slot is busy in a clock in which the scheduler issues an instruction.
    "issue_slots",
    "fma_pipe",
    "alu_pipe",
    "lsu_pipe",
    "tensor_pipe",
    "uniform_pipe",
    "xu_pipe",
    # The wavefronts of L1 and of shared memory are counted together, because both are one memory.
    "l1_data",
    # Through ``l1_writeback``, data goes from L1 and shared memory to registers.
    "l1_writeback",
    "l1_requests",
    "l2",
    "l2_to_sm",
    "dram",
)
# These columns are averages per scheduler (a multiprocessor has four) and per clock in which there were
# warps.
PROFILE_RATES = ("warps_possible", "warps_active", "warps_eligible", "issued")
# Hits are in percent of the sectors that were looked up.
PROFILE_HITS = ("l1_hits", "l2_hits")
# A multiprocessor's clocks are counted during the launch, and while it had warps.
PROFILE_CLOCKS = ("clocks", "active_clocks")
# Each limit is the number of blocks per multiprocessor that a resource allows.
PROFILE_LIMITS = ("limit_blocks", "limit_registers", "limit_shared_memory", "limit_warps")
PROFILE = Table(
    {
        "stage": "text",
        "tiles": "text",
        "m": "whole",
        "n": "whole",
        "k": "whole",
        "file": "text",
        "kernel": "text",
        "grid": "text",
        "block": "text",
        "dynamic_shared_bytes": "whole",
        "static_shared_bytes": "whole",
        "registers": "whole",
        "local_bytes": "whole",
        **dict.fromkeys(PROFILE_CLOCKS, "real"),
        **dict.fromkeys((*PROFILE_RATES, *PROFILE_HITS), "real"),
        **dict.fromkeys(PROFILE_BUSY, "real"),
        **dict.fromkeys(PROFILE_LIMITS, "whole"),
        "samples": "whole",
        **dict.fromkeys(COUNTED, "whole"),
        **dict.fromkeys(COUNTED_OF_TENSOR_CORES, "whole"),
        **ORIGIN,
        "ncu": "text",
    }
)

PEERS = Table(
    {
        "peer": "text",
        "kernel": "text",
        "stage": "text",
        "dtype": "text",
        "m": "whole",
        "n": "whole",
        "k": "whole",
        "milliseconds": "real",
        "tflops": "real",
        "ratio_to_cublas": "real",
        "relative_error": "real",
        "note": "text",
        "gpu": "text",
        "driver": "text",
        "cuda": "text",
        "date": "text",
    }
)

PEERS_APART = Table(
    {
        "peer": "text",
        "kernel": "text",
        "change": "text",
        "option": "text",
        "m": "whole",
        "n": "whole",
        "k": "whole",
        "registers": "whole",
        "stack_bytes": "whole",
        "spilled_bytes": "whole",
        "blocks_per_sm": "whole",
        "milliseconds": "real",
        "tflops": "real",
        "warp_instructions": "whole",
        "local_load_requests": "whole",
        "local_store_requests": "whole",
        "barrier_clocks": "real",
        "memory_clocks": "real",
        "gpu": "text",
        "driver": "text",
        "cuda": "text",
        "date": "text",
    }
)

COMPUTE_ROOFS = Table({"unit": "text", "tflops": "real", "sm_clock_mhz": "whole", **ORIGIN})

TENSOR_CORE_SUMS = Table(
    {
        "case": "text",
        "accumulator": "whole",
        # ``products`` has the products of one instruction, with blanks between them.
        "products": "text",
        "k": "whole",
        # ``result`` has all its digits.
        "result": "text",
        # The mean is over 256 sums.
        "mean_relative_error": "real",
        **ORIGIN,
    }
)

LANE_LAYOUTS = Table(
    {
        "lane_rows": "whole",
        "lane_columns": "whole",
        # ``elements`` says whether a thread's rows and columns lie side by side or in runs of four.
        "elements": "text",
        # ``size`` is m, n and k.
        "size": "whole",
        "registers": "whole",
        "local_bytes": "whole",
        "relative_error": "real",
        "repetitions": "whole",
        "milliseconds": "real",
        "tflops": "real",
        "cublas_tflops": "real",
        "sm_clock_mhz": "whole",
        **ORIGIN,
    }
)

ONE_CHANGE = Table(
    {
        "question": "text",
        "stage": "text",
        # ``change`` is the one difference from the stage, or "none" for the stage itself.
        "change": "text",
        # ``size`` is m, n and k.
        "size": "whole",
        "registers": "whole",
        "local_bytes": "whole",
        "relative_error": "real",
        "repetitions": "whole",
        "milliseconds": "real",
        "tflops": "real",
        "cublas_tflops": "real",
        "sm_clock_mhz": "whole",
        **ORIGIN,
    }
)

ONE_CHANGE_COUNTS = ("async_copy_sectors", "async_copy_wavefronts", "l2_read_sectors", "warp_instructions")

ONE_CHANGE_COUNTED = Table(
    {
        "question": "text",
        "stage": "text",
        "change": "text",
        "size": "whole",
        **dict.fromkeys(ONE_CHANGE_COUNTS, "whole"),
        **ORIGIN,
    }
)

ROOFS = Table(
    {"memory": "text", "bytes": "whole", "tb_s": "real", "method": "text", **ORIGIN}, later=("method",)
)

PUBLISHED = Table(
    {
        "source": "text",
        "kernel": "text",
        "stage": "text",
        "dtype": "text",
        "gpu": "text",
        "tflops": "real",
        "note": "text",
    }
)

WAVEFRONTS = Table(
    {
        "pattern": "text",
        "op": "text",
        "bits": "whole",
        "lane_word_index": "text",
        "wavefronts": "whole",
        "data_stage_wavefronts": "whole",
        "source": "text",
    }
)
