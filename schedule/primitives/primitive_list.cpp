#include "schedule/primitives/primitive_list.h"

#include <vector>

namespace tensmith {

std::span<const PrimitiveDef* const> all_primitives() {
  static const std::vector<const PrimitiveDef*> list = {
      &annotate_primitive(),
      &blockize_primitive(),
      &cache_index_primitive(),
      &cache_inplace_primitive(),
      &cache_read_primitive(),
      &cache_write_primitive(),
      &compute_at_primitive(),
      &compute_inline_primitive(),
      &compute_root_primitive(),
      &decompose_padding_primitive(),
      &decompose_reduction_primitive(),
      &double_buffer_primitive(),
      &fuse_primitive(),
      &fuse_reduction_epilogue_primitive(),
      &group_primitive(),
      &loop_partition_primitive(),
      &pad_einsum_primitive(),
      &parallel_primitive(),
      &pipeline_primitive(),
      &pragma_primitive(),
      &prefetch_primitive(),
      &prefetch_next_primitive(),
      &read_at_primitive(),
      &reindex_primitive(),
      &reorder_primitive(),
      &reverse_compute_at_primitive(),
      &reverse_compute_inline_primitive(),
      &rfactor_primitive(),
      &rolling_buffer_primitive(),
      &sample_categorical_primitive(),
      &sample_location_primitive(),
      &sample_tile_primitive(),
      &set_axis_separator_primitive(),
      &set_scope_primitive(),
      &split_primitive(),
      &storage_align_primitive(),
      &tensorize_primitive(),
      &tile_primitive(),
      &transform_layout_primitive(),
      &unannotate_primitive(),
      &unit_loop_primitive(),
      &unroll_primitive(),
      &unsafe_set_dtype_primitive(),
      &vectorize_primitive(),
      &write_at_primitive(),
  };
  return list;
}

std::span<const OtherName> other_names() {
  static const std::vector<OtherName> list = {
      {"add_unit_loop", "unit_loop"},
      {"bind", "a step for GPUs: loops become grid, block, thread or virtual thread; on the CPU parallel"},
      {"block_layout", "transform_layout, such as layout=1/16,0,1%16"},
      {"env_threads", "a step for GPUs: the threads of a launch; on the CPU parallel, with min_chunk (pragma)"},
      {"flatten", "fuse, of all loops"},
      {"hide_buffer_access", "needs no step: who reads what follows from the expressions; annotate with access= notes"},
      {"inline", "compute_inline"},
      {"merge", "blockize: stages of the same axes get one set of loops"},
      {"partition", "loop_partition"},
      {"predicate", "split with tail=guard; of a whole stage its condition (where) in the definition"},
      {"reindex_cache_read", "reindex"},
      {"reindex_cache_write", "cache_write, then transform_layout of the new stage"},
      {"reorder_block_iter_var", "reorder for loops, transform_layout for storage: axes themselves have no order"},
      {"set_store_predicate", "split with tail=guard"},
      {"software_pipeline", "pipeline"},
      {"sync_threads", "a step for GPUs; a parallel loop of the CPU ends when all of its iterations have"},
  };
  return list;
}

const PrimitiveDef* find_primitive(const std::string& name) {
  for (const PrimitiveDef* def : all_primitives())
    if (def->name == name) return def;
  return nullptr;
}

}  // namespace tensmith
