#include "tests/unit/schedule/random_schedules.h"

#include <algorithm>

#include "schedule/intrinsics.h"
#include "schedule/prefetches.h"
#include "schedule/primitive_def.h"

namespace tensmith {

namespace {

std::string random_loop(const StageState& stage, Rng& rng) {
  return stage.order.empty() ? "none" : stage.loops[pick(stage.order, rng)].name;
}

/// A mark or request that stands somewhere, as unannotate names it; nothing when there is none.
std::optional<Step> random_unannotate(const ScheduleState& state, Rng& rng) {
  std::vector<Step> all;
  const auto add = [&](const StageState& stage, const std::string& loop, const std::string& key) {
    all.push_back({"unannotate", {{"stage", stage.name}, {"loop", loop}, {"key", key}}});
  };
  for (const StageState& stage : state.stages) {
    for (const auto& [key, value] : stage.notes) add(stage, "", key);
    for (const auto& [read, notes] : stage.access_notes)
      for (const auto& [key, value] : notes) {
        add(stage, "", key);
        all.back().args.emplace_back("access", read);
      }
    for (int loop : stage.order) {
      for (const auto& [key, value] : stage.loops[loop].attrs) add(stage, stage.loops[loop].name, key);
      for (const Prefetch& p : stage.loops[loop].prefetches) add(stage, stage.loops[loop].name, prefetch_key(p));
    }
  }
  if (all.empty()) return {};
  return pick(all, rng);
}

/// A type that holds all values of another one, so that a stage stored in it gives the same results.
std::string wider_dtype(DType dtype) {
  return dtype.is_float() ? "f64" : dtype.is_uint() || dtype.is_bool() ? "u64" : "i64";
}

std::string random_layout(const StageState& stage, int64_t output, Rng& rng) {
  const int rank = static_cast<int>(stage.stage->outputs[output]->shape.size());
  std::vector<int> order;
  for (int d = 0; d < rank; ++d) order.push_back(d);
  rng.shuffle(order);
  Layout layout = Layout::permuted(order);
  if (rng.chance(0.5)) layout = Layout::blocked(order, static_cast<int>(rng.below(rank)), rng.between(2, 8));
  std::string text = layout.text();
  if (rng.chance(0.3)) text += ";halo " + std::to_string(rng.below(rank)) + ":1+2";
  return text;
}

}  // namespace

Step random_step(const ScheduleState& state, Rng& rng) {
  // The frequent ones of real schedules more often.
  static const std::vector<std::string> kOften = {"split",   "split",     "split",  "compute_at", "compute_at",
                                                  "reorder", "vectorize", "unroll", "fuse",       "parallel"};
  const auto all = all_primitives();
  // Those that fit few states are tried more often than they succeed.
  static const std::vector<std::string> kSeldom = {"blockize",
                                                   "cache_index",
                                                   "cache_inplace",
                                                   "decompose_padding",
                                                   "pad_einsum",
                                                   "prefetch_next",
                                                   "read_at",
                                                   "reindex",
                                                   "set_axis_separator",
                                                   "fuse_reduction_epilogue",
                                                   "group",
                                                   "sample_location",
                                                   "sample_tile",
                                                   "unsafe_set_dtype",
                                                   "write_at",
                                                   "pipeline",
                                                   "double_buffer",
                                                   "reverse_compute_at",
                                                   "rolling_buffer",
                                                   "rfactor",
                                                   "tile",
                                                   "tensorize",
                                                   "reverse_compute_inline"};
  const PrimitiveDef& def = *(rng.chance(0.45)  ? find_primitive(pick(kOften, rng))
                              : rng.chance(0.4) ? find_primitive(pick(kSeldom, rng))
                                                : all[rng.below(all.size())]);
  if (def.name == "unannotate")
    if (const std::optional<Step> step = random_unannotate(state, rng)) return *step;
  Step step{def.name, {}};
  const StageState* stage = &pick(state.stages, rng);
  for (int k = 0; k < 8 && stage->stage->stage_kind == StageKind::kPlaceholder; ++k) stage = &pick(state.stages, rng);
  const StageState* at = stage;
  // On a loop, on the stage or on what it reads.
  const bool on_access = def.name == "annotate" && rng.chance(0.3);
  for (const ArgSpec& spec : def.args) {
    const std::string name = spec.name;
    StepArg value;
    switch (spec.kind) {
      case ArgKind::kStage: {
        if (name == "stage") {
          value = stage->name;
          break;
        }
        const int index = static_cast<int>(stage - state.stages.data());
        std::vector<int> near;
        if (name == "access" && !on_access) {
          value = std::string();
          break;
        }
        if (name == "from") {
          // A stage on the way to this one.
          const StageState* first = stage;
          for (int k = 0; k < 2; ++k)
            if (const std::vector<Buffer> reads = read_buffers(*first->stage); !reads.empty())
              if (const StageState& before = state.stages[state.producer_of(pick(reads, rng).get())];
                  before.stage->stage_kind == StageKind::kCompute)
                first = &before;
          value = first->name;
          break;
        }
        if (name == "producer" || name == "access") {
          for (const Buffer& read : read_buffers(*stage->stage)) near.push_back(state.producer_of(read.get()));
        } else if (name == "with") {
          // One with the same axes, if there is.
          for (size_t k = 0; k < state.stages.size(); ++k)
            if (static_cast<int>(k) != index && state.stages[k].loops.size() == stage->loops.size())
              near.push_back(static_cast<int>(k));
        } else {
          near = state.consumers_of(index);
        }
        at = near.empty() || rng.chance(0.1) ? &pick(state.stages, rng) : &state.stages[pick(near, rng)];
        value = at->name;
        break;
      }
      case ArgKind::kLoop: value = on_access ? std::string() : random_loop(*stage, rng); break;
      case ArgKind::kNewNames: {
        std::vector<std::string> names;
        for (int64_t k = rng.between(2, 3); k > 0; --k)
          names.push_back("s" + std::to_string(stage->loops.size()) + "_" + std::to_string(k));
        value = names;
        break;
      }
      case ArgKind::kLoops: {
        std::vector<std::string> names;
        std::vector<int> order = stage->order;
        if (def.name == "fuse") {
          const size_t first = order.empty() ? 0 : rng.below(order.size());
          for (size_t k = first; k < std::min(first + 2 + rng.below(2), order.size()); ++k)
            names.push_back(stage->loops[order[k]].name);
        } else {
          rng.shuffle(order);
          const size_t count = order.empty() ? 0 : 1 + rng.below(order.size());
          for (size_t k = 0; k < count; ++k) names.push_back(stage->loops[order[k]].name);
        }
        value = names;
        break;
      }
      case ArgKind::kNewName:
        if (name == "at") {
          value = random_loop(*at, rng);
        } else {
          // Fresh within the stage, and short.
          value = name.substr(0, 1) + std::to_string(stage->loops.size()) +
                  (name == "name" ? "_" + std::to_string(state.stages.size()) : "");
        }
        break;
      case ArgKind::kInt: {
        static constexpr int64_t kNumbers[] = {1, 2, 3, 4, 5, 7, 8, 16, 17};
        static constexpr int64_t kLanes[] = {2, 4, 8, 16};
        value = name == "output"  ? static_cast<int64_t>(rng.below(stage->stage->outputs.size()))
                : name == "lanes" ? pick(kLanes, rng)
                : name == "read"  ? static_cast<int64_t>(rng.chance(0.3) ? rng.below(3) : 0)
                : name == "dim"   ? static_cast<int64_t>(rng.below(3))
                                  : pick(kNumbers, rng);
        break;
      }
      case ArgKind::kInts: {
        std::vector<int64_t> points;
        if (name == "decision" || name == "weights") {  // drawn; as often
          value = points;
          break;
        }
        if (name == "multiples") {
          for (size_t k = 0; k < stage->stage->axes.size() + stage->stage->reduce_axes.size(); ++k)
            points.push_back(rng.chance(0.5) ? 1 : rng.between(2, 8));
          value = points;
          break;
        }
        if (name == "separators") {
          const auto rank = static_cast<int64_t>(stage->layout_of(0).dims().size());
          if (rank > 1) points.push_back(rng.between(1, rank - 1));
          value = points;
          break;
        }
        if (rng.chance(0.8) || name == "values") points.push_back(rng.between(1, 4));
        if (rng.chance(0.5)) points.push_back(rng.chance(0.5) ? rng.between(5, 9) : -rng.between(1, 4));
        value = points;
        break;
      }
      case ArgKind::kText:
        if (name == "spread")
          value = stage->attach == AttachKind::kAt ? random_loop(*state.find(stage->attach_stage), rng)
                                                   : std::string("none");
        else if (!spec.allowed.empty()) value = pick(spec.allowed, rng);
        else if (name == "key") value = std::string(on_access || rng.chance(0.5) ? "note.x" : "unroll");
        else if (name == "dtype") value = wider_dtype(stage->stage->outputs[0]->dtype);
        else if (name == "intrinsic") value = pick(tensor_intrinsics(), rng).name;
        else value = random_layout(*stage, 0, rng);
        break;
    }
    step.args.emplace_back(name, value);
  }
  return step;
}

/// Steps in a row that random ones hardly come upon: register tiles where a consumer's vectors want them, intrinsics
/// where a stage computes what they do.
static std::vector<Step> random_recipe(const ScheduleState& state, Rng& rng) {
  for (const StageState& s : state.stages)
    for (const TensorIntrinsic& intrinsic : tensor_intrinsics())
      if (s.order.size() >= 2 && match_intrinsic(intrinsic, *s.stage).ok())
        return {
            {"tensorize",
             {{"stage", s.name}, {"loop", s.loops[s.order[s.order.size() - 2]].name}, {"intrinsic", intrinsic.name}}}};
  const StageState& stage = pick(state.stages, rng);
  if (stage.stage->stage_kind != StageKind::kCompute || stage.attach == AttachKind::kInlined || stage.order.empty())
    return {};
  // Few readers do what this one asks for.
  for (const StageState& reader : state.stages)
    for (const Buffer& read : read_buffers(*reader.stage))
      if (const StageState& reduction = state.stages[state.producer_of(read.get())];
          reduction.stage->reducer && rng.chance(0.5))
        return {{"fuse_reduction_epilogue", {{"stage", reader.name}, {"producer", reduction.name}}}};
  const std::vector<int> users = state.consumers_of(static_cast<int>(&stage - state.stages.data()));
  if (users.empty() || stage.axis_loops.empty()) return {};
  const StageState& consumer = state.stages[pick(users, rng)];
  if (consumer.order.empty()) return {};
  const std::string last = consumer.loops[consumer.order.back()].name, outer = last + ".t", inner = last + ".u";
  const int64_t lanes = rng.chance(0.5) ? 4 : 8;
  return {{"split", {{"stage", consumer.name}, {"loop", last}, {"factor", lanes}, {"outer", outer}, {"inner", inner}}},
          {"vectorize", {{"stage", consumer.name}, {"loop", inner}}},
          {"compute_at", {{"stage", stage.name}, {"consumer", consumer.name}, {"at", outer}}},
          {"tile",
           {{"stage", stage.name},
            {"rows", std::vector<std::string>{}},
            {"columns", stage.loops[stage.axis_loops.back()].name},
            {"lanes", lanes}}}};
}

Schedule random_schedule(const Workload& workload, int count, Rng& rng) {
  Schedule schedule(workload);
  if (rng.chance(0.2))
    for (const Step& step : random_recipe(schedule.state(), rng)) (void)schedule.try_apply(step).ok();
  for (int tries = 0; tries < 4 * count && static_cast<int>(schedule.steps().size()) < count; ++tries)
    (void)schedule.try_apply(random_step(schedule.state(), rng)).ok();
  return schedule;
}

}  // namespace tensmith
