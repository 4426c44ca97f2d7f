#include <algorithm>

#include "schedule/primitives/accesses.h"
#include "schedule/primitives/helpers.h"
#include "schedule/primitives/primitive_list.h"

namespace tensmith {

namespace {

Result<void> check(const ScheduleState& state, const Step& step) {
  const StageState& stage = *state.find(step.text("stage"));
  if (Result<void> ok = check_has_loops(stage); !ok) return ok;
  const Result<DType> dtype = parse_dtype(step.text("dtype"));
  if (!dtype) return dtype.failure();
  const auto refuse = [&](const std::string& why) {
    return Failure{"dtype-illegal",
                   "elements of stage " + stage.name + " cannot become " + step.text("dtype") + ": " + why};
  };
  if (dtype->lanes != 1) return refuse("expected a type of one element");
  if (stage.stage->outputs.size() != 1) return refuse("it has several outputs; use cache_read for one of them");
  const int index = static_cast<int>(&stage - state.stages.data());
  if (state.is_output(index)) return refuse("it is an output, whose memory belongs to the caller; use cache_write");
  if (stage.stage->reducer)
    return refuse("it is a reduction, which adds in its own type; use cache_write and set the type of the copy");
  for (const int user : state.consumers_of(index)) {
    if (state.stages[user].stage->stage_kind == StageKind::kImperative)
      return refuse("stage " + state.stages[user].name +
                    ", which is written out as statements, reads it; use "
                    "cache_read for that one");
    if (state.stages[user].intrinsic_loop >= 0)
      return refuse("intrinsic " + state.stages[user].intrinsic + " of stage " + state.stages[user].name +
                    " reads it; use this step before tensorize");
  }
  return {};
}

void apply(ScheduleState& state, const Step& step) {
  const DType dtype = parse_dtype(step.text("dtype")).value();
  StageState& stage = *state.find(step.text("stage"));
  const std::vector<Buffer> before = stage.stage->outputs;
  stage.stage = rebuild_stage(stage.stage, [&](StageNode& node) {
    for (Buffer& output : node.outputs) output = make_buffer(node.name, dtype, output->shape);
    for (Expr& body : node.bodies) body = cast(dtype, body);
  });
  const Stage narrowed = stage.stage;
  for (StageState& reader : state.stages) {
    const std::vector<Buffer> reads = read_buffers(*reader.stage);
    const auto is_old = [&](const Buffer& read) {
      return std::any_of(before.begin(), before.end(), [&](const Buffer& b) { return b.same_as(read); });
    };
    if (std::none_of(reads.begin(), reads.end(), is_old)) continue;
    reader.stage = rebuild_stage(reader.stage, [&](StageNode& node) {
      rewrite_expressions(node, [&](const Expr& e) {
        return rewrite(e, [&](const Expr& part) -> Expr {
          const auto* read = part.as<Load>();
          for (size_t o = 0; read && o < before.size(); ++o)
            if (before[o].same_as(read->buffer))
              return cast(before[o]->dtype, load(narrowed->outputs[o], read->indices));
          return part;
        });
      });
      std::erase_if(node.producers, [&](const Stage& s) { return is_old(s->outputs[0]); });
      node.producers.push_back(narrowed);
    });
  }
}

}  // namespace

const PrimitiveDef& unsafe_set_dtype_primitive() {
  static const PrimitiveDef def{
      .name = "unsafe_set_dtype",
      .doc =
          "Stores a stage in another element type: it is converted when it is stored and back when it is read.\n"
          "Unsafe, since a narrower type rounds each value: results differ by more than the order of a sum makes.\n"
          "Rewrite: P[i] = f(i); C[i] = g(P[i])  -->  P'[i] = T(f(i)); C[i] = g(f32(P'[i]))",
      .halide = "none",
      .tvm = "unsafe_set_dtype",
      .args = {{"stage", ArgKind::kStage, "the stage"}, {"dtype", ArgKind::kText, "the element type, such as bf16"}},
      .check = check,
      .apply = apply,
      .samples = {{"stencils", {"unsafe_set_dtype stage=P dtype=f64"}},
                  {"softmax",
                   {"split stage=e loop=i1 factor=4 outer=jo inner=ji", "vectorize stage=e loop=ji",
                    "unsafe_set_dtype stage=e dtype=f64"}}}};
  return def;
}

}  // namespace tensmith
