#include <algorithm>

#include "schedule/primitives/accesses.h"
#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"
#include "tensor/equal_hash.h"

namespace tensmith {

namespace {

/// What the reader combines with the reduction's result in the way that the reduction combines its terms.
struct Epilogue {
  Expr whole;  ///< `P[i] + e`
  Expr read;   ///< `P[i]`
  Expr other;  ///< `e`
};

bool reads_buffer(const Expr& e, const Buffer& buffer) {
  bool found = false;
  visit(e, [&](const Expr& part) {
    const auto* read = part.as<Load>();
    found = found || (read && read->buffer.same_as(buffer));
    return !found;
  });
  return found;
}

/// The operation that the reducer is, or null. Where the value stands among the terms must not matter.
const Binary* operation_of(const Reducer& reducer) {
  if (reducer.combined.size() != 1) return nullptr;
  const auto* op = reducer.combined[0].as<Binary>();
  if (!op || !op->a.same_as(reducer.lhs[0]) || !op->b.same_as(reducer.rhs[0])) return nullptr;
  switch (op->op) {
    case BinaryOp::kAdd:
    case BinaryOp::kMul:
    case BinaryOp::kMin:
    case BinaryOp::kMax: return op;
    default: return nullptr;
  }
}

Failure refused(const StageState& reader, const StageState& producer, const std::string& why) {
  return {"epilogue-illegal", "nothing of stage " + reader.name + " can go into the start values of " + producer.name +
                                  ": " + why + "; compute_at keeps both in one loop"};
}

Result<Epilogue> find_epilogue(const StageState& reader, const StageState& producer) {
  const auto refuse = [&](const std::string& why) { return refused(reader, producer, why); };
  if (!producer.stage->reducer) return refuse(producer.name + " is no reduction");
  const Binary* op = operation_of(*producer.stage->reducer);
  if (!op) return refuse("its reducer is no single operation, such as + or max");
  if (reader.stage->reducer) return refuse(reader.name + " is itself a reduction");
  const Buffer& buffer = producer.stage->outputs[0];
  std::vector<Epilogue> found;
  int reads = 0;
  for_each_expression(*reader.stage, [&](const Expr& e) {
    visit(e, [&](const Expr& part) {
      if (const auto* read = part.as<Load>(); read && read->buffer.same_as(buffer)) ++reads;
      return true;
    });
    visit(e, [&](const Expr& part) {
      // What is computed under a condition may read beyond its bounds without it, and what lies in a let use its name.
      if (part.kind() == NodeKind::kSelect || part.kind() == NodeKind::kLet) return false;
      const auto* both = part.as<Binary>();
      if (!both || both->op != op->op || !(both->dtype == op->dtype)) return true;
      for (const auto& [a, b] : {std::pair{both->a, both->b}, std::pair{both->b, both->a}})
        if (const auto* read = a.as<Load>(); read && read->buffer.same_as(buffer) && !reads_buffer(b, buffer))
          found.push_back({part, a, b});
      return true;
    });
  });
  if (reads != 1 || found.size() != 1)
    return refuse("expected it to be read once, in an operation like that of its reducer and under no condition");
  return found[0];
}

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& reader = *state.find(step.text("stage"));
  const StageState& producer = *state.find(step.text("producer"));
  if (Result<void> ok = check_has_loops(reader); !ok) return ok;
  if (Result<void> ok = check_has_loops(producer); !ok) return ok;
  const Result<Epilogue> epilogue = find_epilogue(reader, producer);
  if (!epilogue) return epilogue.failure();
  const auto refuse = [&](const std::string& why) { return refused(reader, producer, why); };
  if (reader.stage->where) return refuse(reader.name + " has values in some places only");
  if (producer.intrinsic_loop >= 0) return refuse(producer.name + " is computed by " + producer.intrinsic);
  const int index = static_cast<int>(&producer - state.stages.data());
  if (state.is_output(index)) return refuse(producer.name + " is an output of the workload");
  if (state.consumers_of(index).size() != 1) return refuse(producer.name + " is read by others, too");
  const Result<std::vector<int>> axes = matching_axes(state, reader, index);
  if (!axes) return axes.failure();
  for (size_t a = 0; a < reader.stage->axes.size(); ++a)
    if (std::find(axes->begin(), axes->end(), static_cast<int>(a)) == axes->end() &&
        collect_vars(epilogue->other).count(reader.stage->axes[a].var.get()))
      return refuse("it depends on axis " + reader.stage->axes[a].var.name() + ", which " + producer.name +
                    " does not have");
  return {};
}

void apply(ScheduleState& state, const Step& step) {
  const std::string reader_name = step.text("stage"), producer_name = step.text("producer");
  StageState& reader = *state.find(reader_name);
  StageState& producer = *state.find(producer_name);
  const int index = static_cast<int>(&producer - state.stages.data());
  const Epilogue epilogue = find_epilogue(reader, producer).value();
  const std::vector<int> axes = matching_axes(state, reader, index).value();
  VarMap map;
  for (size_t d = 0; d < axes.size(); ++d) map[reader.stage->axes[axes[d]].var.get()] = producer.stage->axes[d].var;
  const Expr other = substitute(epilogue.other, map);
  const BinaryOp op = operation_of(*producer.stage->reducer)->op;
  producer.stage = rebuild_stage(producer.stage, [&](StageNode& node) {
    if (node.initial.empty()) node.initial = {other};
    else node.initial[0] = Binary::make(op, node.initial[0], other);
    for (const Stage& s : reader.stage->producers)
      if (std::any_of(s->outputs.begin(), s->outputs.end(), [&](const Buffer& b) { return reads_buffer(other, b); }))
        node.producers.push_back(s);
  });
  const Stage started = producer.stage;
  reader.stage = rebuild_stage(reader.stage, [&](StageNode& node) {
    rewrite_expressions(node, [&](const Expr& e) {
      return rewrite(e, [&](const Expr& part) { return equal(part, epilogue.whole) ? epilogue.read : part; });
    });
    node.producers.push_back(started);
  });
  // Behind what its start values read, which lies before the reader, its only consumer.
  const auto first = state.stages.begin() + index;
  std::rotate(first, first + 1, state.stages.begin() + (state.find(reader_name) - state.stages.data()));
}

}  // namespace

const PrimitiveDef& fuse_reduction_epilogue_primitive() {
  static const PrimitiveDef def{
      .name = "fuse_reduction_epilogue",
      .doc =
          "Moves what a reader adds to the result of a sum (or takes the maximum of with that of a maximum, ...) into\n"
          "the start values of the reduction. A reader that then only copies goes away by reverse_compute_inline.\n"
          "Rewrite: C[i] = sum of f(i, k); R[i] = max(C[i] + bias[i], 0)\n"
          "    -->  C[i] = bias[i] + sum of f(i, k); R[i] = max(C[i], 0)",
      .halide = "none (part of the definition)",
      .tvm = "fuse_reduction_epilogue",
      .args = {{"stage", ArgKind::kStage, "the reader"}, {"producer", ArgKind::kStage, "the reduction"}},
      .check = check,
      .apply = apply,
      .samples = {{"dense", {"fuse_reduction_epilogue stage=R producer=C"}},
                  {"dense_m",
                   {"split stage=R loop=i0 factor=4 outer=io inner=ii", "compute_at stage=C consumer=R at=io",
                    "fuse_reduction_epilogue stage=R producer=C"}}}};
  return def;
}

}  // namespace tensmith
