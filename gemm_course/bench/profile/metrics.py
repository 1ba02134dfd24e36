"""Nsight Compute's metric behind each column of `records.profiles` that is not one of the counters."""

from gemm_course.bench.counters.metrics import METRICS, TENSOR_METRICS

_ELAPSED = "avg.pct_of_peak_sustained_elapsed"
SAMPLES = "smsp__pcsamp_sample_count"

REAL = {
    "clocks": "sm__cycles_elapsed.avg",
    "active_clocks": "sm__cycles_active.avg",
    "warps_possible": "smsp__maximum_warps_avg_per_active_cycle",
    "warps_active": "smsp__warps_active.avg.per_cycle_active",
    "warps_eligible": "smsp__warps_eligible.avg.per_cycle_active",
    "issued": "smsp__issue_active.avg.per_cycle_active",
    "l1_hits": "l1tex__t_sector_hit_rate.pct",
    "l2_hits": "lts__t_sector_hit_rate.pct",
    "issue_slots": f"sm__issue_active.{_ELAPSED}",
    "fma_pipe": f"sm__pipe_fma_cycles_active.{_ELAPSED}",
    "alu_pipe": f"sm__pipe_alu_cycles_active.{_ELAPSED}",
    "lsu_pipe": f"sm__inst_executed_pipe_lsu.{_ELAPSED}",
    "tensor_pipe": f"sm__pipe_tensor_cycles_active.{_ELAPSED}",
    "uniform_pipe": f"sm__inst_executed_pipe_uniform.{_ELAPSED}",
    "xu_pipe": f"sm__inst_executed_pipe_xu.{_ELAPSED}",
    "l1_data": f"l1tex__data_pipe_lsu_wavefronts.{_ELAPSED}",
    "l1_writeback": f"l1tex__lsu_writeback_active.{_ELAPSED}",
    "l1_requests": f"l1tex__lsuin_requests.{_ELAPSED}",
    "l2": f"lts__throughput.{_ELAPSED}",
    "l2_to_sm": f"l1tex__m_xbar2l1tex_read_sectors.{_ELAPSED}",
    "dram": f"gpu__dram_throughput.{_ELAPSED}",
}

WHOLE = {
    "limit_blocks": "launch__occupancy_limit_blocks",
    "limit_registers": "launch__occupancy_limit_registers",
    "limit_shared_memory": "launch__occupancy_limit_shared_mem",
    "limit_warps": "launch__occupancy_limit_warps",
    "samples": SAMPLES,
    **METRICS,
    **TENSOR_METRICS,
}

# `--set full` brings what it has; what it lacks is asked for by name. The GPU may lack some of it, and one
# unknown metric fails the whole run, so then less is asked for.
ASKED_FOR = ((*METRICS.values(), *TENSOR_METRICS.values()), tuple(METRICS.values()), ())
