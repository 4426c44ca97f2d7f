/// What operators share that only move elements: stages, index data, and the loops of their references.
#pragma once

#include "graph/op_def.h"
#include "graph/ops/ref_loops.h"
#include "graph/ops/shapes.h"

namespace tensmith::graph::ops {

/// Whether a dim is 0.
bool is_empty(const Shape& shape);
/// A stage of that type and shape. An output without elements reads nothing, so that its indices need not be in bounds.
Tensor injective(const std::string& name, const TensorType& type, const std::function<Expr(const Indices&)>& body);

/// Index data brought into [0, extent): negative numbers count from the end, what is outside then is clamped, so that
/// no data can make generated code read or write outside a tensor. `extent` must be above 0.
Expr wrap_index(const Expr& raw, const Expr& extent);
/// `value` where `extent` is above 0, else 0: guards loads from an axis that may be empty at run time.
Expr unless_empty(const Expr& extent, const Expr& value);
/// The same for a number. Errors: `index-out-of-range`.
Result<int64_t> wrap_number(int64_t index, int64_t extent, const std::string& what);

/// The work of an operator that reads no more elements of input 0 than its output has (gathers, slices).
void reads_what_it_gives(const InferContext& ctx, OpWork& work);

/// Makes an output of a reference rule.
RefTensor& make_output(ReferenceContext& ctx, DType dtype, Dims shape, int output = 0);
inline void copy_element(RefTensor& to, int64_t at, const RefTensor& from, int64_t index) {
  if (to.is_float()) to.f[at] = from.f[index];
  else to.i[at] = from.i[index];
}
inline int64_t flat_index(const Dims& dims, const Dims& index) {
  int64_t flat = 0;
  for (size_t k = 0; k < dims.size(); ++k) flat = flat * dims[k] + index[k];
  return flat;
}
/// Calls `fn(position, index)` for every index inside `dims` in row-major order.
template <typename Fn>
void for_each_index(const Dims& dims, Fn fn) {
  const int64_t count = count_of(dims);
  Dims index(dims.size(), 0);
  for (int64_t position = 0; position < count; ++position) {
    fn(position, static_cast<const Dims&>(index));
    for (size_t k = dims.size(); k-- > 0;) {
      if (++index[k] < dims[k]) break;
      index[k] = 0;
    }
  }
}
/// The reference of an operator whose output has the elements of input 0 in the same order.
void copy_elements(ReferenceContext& ctx, Dims shape);
/// The reference of an operator that moves elements: element `index` of the output is element `source(index)` of `from`
/// (its flat index), or 0 where that is negative.
void move_elements(RefTensor& to, const RefTensor& from, const std::function<int64_t(const Dims& index)>& source);

}  // namespace tensmith::graph::ops
