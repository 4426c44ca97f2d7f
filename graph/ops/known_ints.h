/// Integer inputs that steer shapes (axes, sizes): their elements as numbers, in each kind of context.
#pragma once

#include <optional>

#include "graph/op_def.h"
#include "graph/ops/refusal.h"
#include "graph/ops/shapes.h"

namespace tensmith::graph::ops {

/// The elements of an integer input; an empty list when the input is not given. Errors: `dynamic-shape` when not all
/// are known.
inline Result<std::vector<int64_t>> known_ints_of(const Constant* constant, const TensorType* type, const char* name) {
  if (constant) return constant->ints();
  if (!type) return std::vector<int64_t>{};
  std::vector<int64_t> values;
  for (const Expr& element : type->value)
    if (const auto value = known(element)) values.push_back(*value);
  const bool empty = type->rank() == 1 && is_const_int(type->shape[0], 0);
  if (values.size() != type->value.size() || (values.empty() && !empty))
    return refuse("dynamic-shape") << "input " << name << ": expected values known at compile time, got "
                                   << to_string(*type) << " that is computed";
  return values;
}
inline Result<std::vector<int64_t>> known_ints_of(const InferContext& ctx, size_t i, const char* name) {
  return known_ints_of(i < ctx.constants.size() ? ctx.constants[i] : nullptr,
                       i < ctx.inputs.size() ? ctx.inputs[i] : nullptr, name);
}
inline Result<std::vector<int64_t>> known_ints_of(const ComputeContext& ctx, size_t i, const char* name) {
  return known_ints_of(i < ctx.constants.size() ? ctx.constants[i] : nullptr,
                       i < ctx.input_types.size() ? ctx.input_types[i] : nullptr, name);
}
inline Result<std::vector<int64_t>> known_ints_of(const ReferenceContext& ctx, size_t i, const char*) {
  if (i >= ctx.inputs.size() || !ctx.inputs[i]) return std::vector<int64_t>{};
  return ctx.inputs[i]->i;
}

}  // namespace tensmith::graph::ops
