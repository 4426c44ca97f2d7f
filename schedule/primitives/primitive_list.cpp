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
      &set_axis_separator_primitive(),
      &set_scope_primitive(),
      &split_primitive(),
      &storage_align_primitive(),
      &tensorize_primitive(),
      &tile_primitive(),
      &transform_layout_primitive(),
      &unannotate_primitive(),
      &unroll_primitive(),
      &vectorize_primitive(),
      &write_at_primitive(),
  };
  return list;
}

const PrimitiveDef* find_primitive(const std::string& name) {
  for (const PrimitiveDef* def : all_primitives())
    if (def->name == name) return def;
  return nullptr;
}

}  // namespace tensmith
