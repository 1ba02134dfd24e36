"""Lists Nsight Compute's metric behind each column of the records of counters and of profiles.

Sectors and wavefronts come from the metrics that Nsight Compute computes from each instruction's addresses
(`sass`), which tell what the program asked for. The data stage's own counters
(`l1tex__data_bank_conflicts_*`) also include lost arbitration and vary from run to run. Requests count
instructions with at least one active lane.
"""

_GLOBAL = "pipe_lsu_mem_global_op"
_SHARED = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op"
_LANES = "smsp__sass_thread_inst_executed_op"

METRICS = {
    "global_load_requests": f"l1tex__t_requests_{_GLOBAL}_ld.sum",
    "global_load_sectors": f"smsp__sass_l1tex_t_sectors_{_GLOBAL}_ld.sum",
    "global_store_requests": f"l1tex__t_requests_{_GLOBAL}_st.sum",
    "global_store_sectors": f"smsp__sass_l1tex_t_sectors_{_GLOBAL}_st.sum",
    "global_reduction_requests": f"l1tex__t_requests_{_GLOBAL}_red.sum",
    "global_reduction_sectors": f"smsp__sass_l1tex_t_sectors_{_GLOBAL}_red.sum",
    "global_atomic_requests": f"l1tex__t_requests_{_GLOBAL}_atom.sum",
    "global_atomic_sectors": f"smsp__sass_l1tex_t_sectors_{_GLOBAL}_atom.sum",
    "shared_load_requests": "smsp__inst_executed_op_shared_ld_pred_on_any.sum",
    "shared_load_wavefronts": f"{_SHARED}_ld.sum",
    "shared_store_requests": "smsp__inst_executed_op_shared_st_pred_on_any.sum",
    "shared_store_wavefronts": f"{_SHARED}_st.sum",
    "shared_atomic_requests": "smsp__inst_executed_op_shared_atom_pred_on_any.sum",
    "shared_wavefronts": "memory_l1_wavefronts_shared",
    "shared_ideal_wavefronts": "memory_l1_wavefronts_shared_ideal",
    "async_copy_requests": f"sm__sass_l1tex_t_requests_{_GLOBAL}_ldgsts.sum",
    "async_copy_sectors": f"sm__sass_l1tex_t_sectors_{_GLOBAL}_ldgsts.sum",
    "async_copy_wavefronts": "sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum",
    "local_load_requests": "smsp__sass_inst_executed_op_local_ld.sum",
    "local_store_requests": "smsp__sass_inst_executed_op_local_st.sum",
    "float32_fma": f"{_LANES}_ffma_pred_on.sum",
    "float32_add": f"{_LANES}_fadd_pred_on.sum",
    "float32_mul": f"{_LANES}_fmul_pred_on.sum",
    "float64_fma": f"{_LANES}_dfma_pred_on.sum",
    "float64_add": f"{_LANES}_dadd_pred_on.sum",
    "float64_mul": f"{_LANES}_dmul_pred_on.sum",
    "warp_instructions": "smsp__inst_executed.sum",
    "l2_read_sectors": "lts__t_sectors_op_read.sum",
    "l2_write_sectors": "lts__t_sectors_op_write.sum",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "nanoseconds": "gpu__time_duration.sum",
}

# These metrics count the work and the loads of Tensor Cores. Where the GPU or Nsight Compute lacks a metric,
# its column stays empty.
TENSOR_METRICS = {
    "matrix_load_requests": "smsp__inst_executed_op_ldsm.sum",
    "matrix_load_wavefronts": "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldsm.sum",
    "mma_instructions": "sm__inst_executed_pipe_tensor_op_hmma.sum",
    "wgmma_instructions": "sm__inst_executed_pipe_tensor_op_gmma.sum",
    "tensor_operations_fp32_acc": "sm__ops_path_tensor_src_fp16_dst_fp32.sum",
    "tensor_operations_fp16_acc": "sm__ops_path_tensor_src_fp16_dst_fp16.sum",
}

# Only profiles have the columns from here on.
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

# `--set full` lacks some of the metrics, so they are named as well. A GPU may not know all of them, and one
# unknown metric makes the whole run fail. After such a failure, fewer metrics are named.
ASKED_FOR = ((*METRICS.values(), *TENSOR_METRICS.values()), tuple(METRICS.values()), ())
