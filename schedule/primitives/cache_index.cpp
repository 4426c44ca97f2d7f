#include "schedule/primitives/accesses.h"
#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"
#include "tensor/equal_hash.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  if (state.find(step.text("name")))
    return Failure{"duplicate-stage", "there is already a stage '" + step.text("name") + "'; choose another name"};
  const Result<Expr> place = place_read(state, stage, step.text("producer"), step.number("read"));
  if (!place) return place.failure();
  const auto& indices = place.value().as<Load>()->indices;
  const int64_t dim = step.number("dim");
  if (dim < 0 || dim >= static_cast<int64_t>(indices.size()))
    return Failure{"bad-read", "dim: " + step.text("producer") + " has " + std::to_string(indices.size()) +
                                   " dimensions, numbered from 0, got " + std::to_string(dim)};
  const Expr& index = indices[dim];
  VarMap renamed;
  if (index.kind() == NodeKind::kVar || axes_in(*stage.stage, {index}, &renamed).empty())
    return Failure{"cache-index-plain", "the index of " + step.text("producer") + " in dimension " +
                                            std::to_string(dim) +
                                            " is a plain axis or the same everywhere, which costs nothing; choose an "
                                            "index that is computed"};
  return {};
}

void apply(ScheduleState& state, const Step& step) {
  StageState& stage = *state.find(step.text("stage"));
  const Expr place = place_read(state, stage, step.text("producer"), step.number("read")).value();
  const Expr index = place.as<Load>()->indices[step.number("dim")];
  VarMap renamed;
  const std::vector<Axis> axes = axes_in(*stage.stage, {index}, &renamed);
  std::vector<Expr> own;
  for (const std::vector<Axis>* list : {&stage.stage->axes, &stage.stage->reduce_axes})
    for (const Axis& axis : *list)
      if (renamed.count(axis.var.get())) own.push_back(axis.var);
  const std::string stage_name = stage.name, name = step.text("name");
  insert_stage(state, stage_name, stage, name, axes, evaluable(substitute(index, renamed), axes));
  StageState& reader = *state.find(stage_name);
  const Expr there = load(buffer_of(state, name), own);
  reader.stage = rebuild_stage(reader.stage, [&](StageNode& node) {
    rewrite_expressions(node, [&](const Expr& e) {
      return rewrite(e, [&](const Expr& part) -> Expr {
        const auto* read = part.as<Load>();
        if (!read || read->buffer.same_as(buffer_of(state, name))) return part;
        std::vector<Expr> indices = read->indices;
        bool changed = false;
        for (size_t d = 0; d < indices.size(); ++d) {
          if (!equal(indices[d], index)) continue;
          // What memory holds says nothing of its range any more; inside nothing changes.
          indices[d] = max(min(there, read->buffer->shape[d] - 1), Expr(0));
          changed = true;
        }
        return changed ? Load::make(read->buffer, indices, read->predicate) : part;
      });
    });
    node.producers.push_back(state.find(name)->stage);
  });
}

}  // namespace

const PrimitiveDef& cache_index_primitive() {
  static const PrimitiveDef def{
      .name = "cache_index",
      .doc =
          "Computes an index once for all elements that use it, into a stage of its own over the axes that it\n"
          "depends on, instead of anew for each element (resizing, strided and gathered reads whose index takes\n"
          "divisions). All reads of the stage with the same index share it. Since the index then comes from memory,\n"
          "what is read of the tensor counts as its whole dimension where the tensor is computed at a loop.\n"
          "Rewrite: Y[i, j] = X[(i * 5) / 3, j]  -->  I[i] = (i * 5) / 3; Y[i, j] = X[I[i], j]",
      .halide = "none (a Func of its own)",
      .tvm = "cache_index",
      .args = {{"stage", ArgKind::kStage, "the reader"},
               {"producer", ArgKind::kStage, "the stage or input that is read"},
               {"dim", ArgKind::kInt, "the dimension whose index it is"},
               {"name", ArgKind::kNewName, "name of the stage of indices"},
               {"read", ArgKind::kInt, "which of the different places that it reads, in order of appearance", "0"}},
      .check = check,
      .apply = apply,
      .samples = {{"depthwise", {"cache_index stage=Y producer=X dim=2 name=I"}},
                  {"depthwise", {"vectorize stage=Y loop=i3", "cache_index stage=Y producer=X dim=3 name=I"}}}};
  return def;
}

}  // namespace tensmith
