/// The explicit list of primitives, one line each.
#pragma once

#include "schedule/primitive_def.h"

namespace tensmith {

const PrimitiveDef& annotate_primitive();
const PrimitiveDef& blockize_primitive();
const PrimitiveDef& cache_index_primitive();
const PrimitiveDef& cache_inplace_primitive();
const PrimitiveDef& cache_read_primitive();
const PrimitiveDef& cache_write_primitive();
const PrimitiveDef& compute_at_primitive();
const PrimitiveDef& compute_inline_primitive();
const PrimitiveDef& compute_root_primitive();
const PrimitiveDef& decompose_padding_primitive();
const PrimitiveDef& decompose_reduction_primitive();
const PrimitiveDef& double_buffer_primitive();
const PrimitiveDef& fuse_primitive();
const PrimitiveDef& fuse_reduction_epilogue_primitive();
const PrimitiveDef& group_primitive();
const PrimitiveDef& loop_partition_primitive();
const PrimitiveDef& pad_einsum_primitive();
const PrimitiveDef& parallel_primitive();
const PrimitiveDef& pipeline_primitive();
const PrimitiveDef& pragma_primitive();
const PrimitiveDef& prefetch_primitive();
const PrimitiveDef& prefetch_next_primitive();
const PrimitiveDef& read_at_primitive();
const PrimitiveDef& reindex_primitive();
const PrimitiveDef& reorder_primitive();
const PrimitiveDef& reverse_compute_at_primitive();
const PrimitiveDef& reverse_compute_inline_primitive();
const PrimitiveDef& rfactor_primitive();
const PrimitiveDef& rolling_buffer_primitive();
const PrimitiveDef& sample_categorical_primitive();
const PrimitiveDef& sample_location_primitive();
const PrimitiveDef& sample_tile_primitive();
const PrimitiveDef& set_axis_separator_primitive();
const PrimitiveDef& set_scope_primitive();
const PrimitiveDef& split_primitive();
const PrimitiveDef& storage_align_primitive();
const PrimitiveDef& tensorize_primitive();
const PrimitiveDef& tile_primitive();
const PrimitiveDef& transform_layout_primitive();
const PrimitiveDef& unannotate_primitive();
const PrimitiveDef& unit_loop_primitive();
const PrimitiveDef& unroll_primitive();
const PrimitiveDef& unsafe_set_dtype_primitive();
const PrimitiveDef& vectorize_primitive();
const PrimitiveDef& write_at_primitive();

}  // namespace tensmith
