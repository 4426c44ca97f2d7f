#include "autotune/access.h"

#include "tensor/equal_hash.h"
#include "tensor/simplify.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

/// The flat physical index as a number, with `axis` at `at`, all other axes at 0 and symbolic dims at 64.
std::optional<int64_t> flat_at(const Layout& layout, const std::vector<Expr>& shape, const std::vector<Expr>& indices,
                               const Var& axis, int64_t at) {
  const auto number = [&](const Expr& e) -> std::optional<int64_t> {
    VarMap map;
    bool data_dependent = false;
    visit(e, [&](const Expr& node) {
      if (const auto* var = node.as<VarNode>()) map[var] = Expr(var == axis.get() ? at : 0);
      data_dependent |= node.kind() == NodeKind::kLoad;
      return !data_dependent;
    });
    if (data_dependent) return {};
    int64_t value;
    if (!as_const_int(simplify(substitute(e, map)), &value)) return {};
    return value;
  };
  const std::vector<Expr> places = layout.physical_index(indices), extents = layout.physical_shape(shape);
  int64_t flat = 0;
  for (size_t d = 0; d < places.size(); ++d) {
    VarMap dims;
    visit(extents[d], [&](const Expr& node) {
      if (const auto* var = node.as<VarNode>()) dims[var] = Expr(64);
      return true;
    });
    int64_t extent;
    if (!as_const_int(simplify(substitute(extents[d], dims)), &extent)) return {};
    const auto place = number(places[d]);
    if (!place) return {};
    flat = flat * extent + *place;
  }
  return flat;
}

std::optional<int64_t> stride(const Layout& layout, const std::vector<Expr>& shape, const std::vector<Expr>& indices,
                              const Var& axis, int64_t apart = 0) {
  bool depends = false;
  for (const Expr& index : indices) depends |= uses_var(index, axis);
  if (!depends) return 0;
  // Two steps away from the origin, where negative paddings and clamps do not bend the line.
  const auto a = flat_at(layout, shape, indices, axis, apart ? 0 : 2),
             b = flat_at(layout, shape, indices, axis, apart ? apart : 3);
  if (!a || !b) return {};
  return *b - *a;
}

}  // namespace

std::vector<TensorAccess> accesses_of(const ScheduleState& state, const StageNode& stage) {
  std::vector<TensorAccess> found;
  for (const Expr& body : stage.bodies)
    visit(body, [&](const Expr& e) {
      const auto* read = e.as<Load>();
      if (!read) return true;
      for (const TensorAccess& access : found) {
        if (!access.buffer.same_as(read->buffer)) continue;
        bool same = true;
        for (size_t d = 0; d < read->indices.size(); ++d) same = same && equal(access.indices[d], read->indices[d]);
        if (same) return true;
      }
      found.push_back({read->buffer, state.producer_of(read->buffer.get()), read->indices});
      return true;
    });
  return found;
}

std::optional<int64_t> stride_of(const ScheduleState& state, const TensorAccess& access, const StageNode&,
                                 const Var& axis) {
  const StageState& producer = state.stages[access.producer];
  int output = 0;
  while (!producer.stage->outputs[output].same_as(access.buffer)) ++output;
  return stride(producer.layout_of(output), access.buffer->shape, access.indices, axis);
}

std::optional<int64_t> store_stride_of(const StageState& stage, int output, const Var& axis, int64_t apart) {
  std::vector<Expr> indices;
  for (const Axis& a : stage.stage->axes) indices.push_back(a.var);
  return stride(stage.layout_of(output), stage.stage->outputs[output]->shape, indices, axis, apart);
}

bool is_var(const Expr& e, const Var& var) { return e.get() == var.get(); }

}  // namespace tensmith
