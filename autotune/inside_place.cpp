#include "autotune/inside_place.h"

#include <algorithm>
#include <map>

#include "schedule/lower/loop_nests.h"
#include "schedule/lower/lowering.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

// At the edges of what threads share out so much may be done twice.
constexpr double kMostAgain = 1.3;

/// How often each loop of a stage that is computed at root runs.
std::map<std::string, double> iterations_of(const StageState& s) {
  std::vector<double> extents(s.loops.size(), 1);
  for (size_t a = 0; a < s.axis_loops.size(); ++a)
    extents[static_cast<size_t>(s.axis_loops[a])] =
        static_cast<double>(ScheduleDraft::size_of(s.stage->axes[a].extent));
  for (size_t a = 0; a < s.reduce_loops.size(); ++a)
    extents[static_cast<size_t>(s.reduce_loops[a])] =
        static_cast<double>(ScheduleDraft::size_of(s.stage->reduce_axes[a].extent));
  for (const LoopRelation& r : s.relations) {
    double &whole = extents[static_cast<size_t>(r.whole)], &outer = extents[static_cast<size_t>(r.outer)],
           &inner = extents[static_cast<size_t>(r.inner)];
    if (r.kind == LoopRelation::Kind::kFuse) {
      whole = outer * inner;
    } else {
      inner = static_cast<double>(r.factor);
      outer = static_cast<double>((static_cast<int64_t>(whole) + r.factor - 1) / r.factor);
    }
  }
  std::map<std::string, double> iterations;
  for (const int loop : s.order)
    iterations[s.loops[static_cast<size_t>(loop)].name] = extents[static_cast<size_t>(loop)];
  return iterations;
}

/// The elements of the storage that a stage inside others gets, the largest where loops were peeled; 0 when the
/// schedule is illegal.
double stored_elements(const Schedule& schedule, const std::string& stage) {
  double most = 0;
  try {
    visit(build_loop_nests(schedule.state(), LowerOptions().line_bytes).body, [&](const Stmt& s) {
      const auto* a = s.as<Allocate>();
      if (!a || a->buffer->name != stage) return true;
      double elements = 1;
      for (const Expr& extent : a->buffer->shape) elements *= static_cast<double>(ScheduleDraft::size_of(extent));
      most = std::max(most, elements);
      return true;
    });
  } catch (const ScheduleError&) {
    return 0;
  }
  return most;
}

Schedule with_stage_at(const Schedule& schedule, const std::string& stage, const std::string& root,
                       const std::string& loop) {
  Schedule trial = schedule;
  trial.compute_at(stage, root, loop);
  return trial;
}

}  // namespace

bool is_product(const ScheduleDraft& draft, const std::string& stage) {
  const StageState& s = draft.stage(stage);
  if (s.stage->stage_kind != StageKind::kCompute || s.stage->outputs.size() != 1) return false;
  if (s.stage->reducer) return accesses_of(draft.schedule.state(), *draft.effective(stage)).size() > 1;
  const Stage body = draft.effective(stage);
  for (const TensorAccess& access : accesses_of(draft.schedule.state(), *body)) {
    const StageState& producer = draft.schedule.state().stages[static_cast<size_t>(access.producer)];
    if (producer.stage->reducer && access.indices.size() == body->axes.size() && is_product(draft, producer.name))
      return true;
  }
  return false;
}

std::vector<std::string> places_in(const ScheduleDraft& draft, const std::string& root, const std::string& stage) {
  std::vector<std::string> places;
  const StageState& s = draft.stage(root);
  for (const int loop : s.order) {
    const LoopVar& l = s.loops[static_cast<size_t>(loop)];
    // From the first unrolled or vectorised loop on a copy for each iteration would be computed.
    if (l.kind != ForKind::kSerial && l.kind != ForKind::kParallel) break;
    Schedule trial = draft.schedule;
    if (trial.try_apply(Step{"compute_at", {{"stage", stage}, {"consumer", root}, {"at", l.name}}}))
      places.push_back(l.name);
  }
  return places;
}

bool can_lower(const Schedule& schedule) {
  try {
    lower(schedule);
    return true;
  } catch (const ScheduleError&) {
    return false;
  }
}

bool can_roll(const Schedule& schedule, const std::string& stage) {
  Schedule trial = schedule;
  return trial.try_apply(Step{"rolling_buffer", {{"stage", stage}}}) && can_lower(trial);
}

std::optional<InsidePlace> choose_inside_place(const ScheduleDraft& draft, const std::string& root,
                                               const std::string& stage, const std::vector<std::string>& places) {
  if (places.empty() || !is_product(draft, stage)) return {};
  const StageNode& node = *draft.stage(stage).stage;
  double all = 1;
  for (const Axis& axis : node.axes) all *= static_cast<double>(ScheduleDraft::size_of(axis.extent));
  const auto bytes = static_cast<double>(node.outputs[0]->dtype.bytes());
  const double room = static_cast<double>(near_bytes(draft.target()));
  const std::map<std::string, double> iterations = iterations_of(draft.stage(root));
  const StageState& outer = draft.stage(root);
  double turns = 1;
  size_t passed = 0;  // loops of the root that are around the place, those included that are no place
  for (const std::string& loop : places) {
    for (bool around = true; around; ++passed) {
      const std::string& name = outer.loops[static_cast<size_t>(outer.order[passed])].name;
      turns *= iterations.at(name);
      around = name != loop;
    }
    const Schedule trial = with_stage_at(draft.schedule, stage, root, loop);
    const double piece = stored_elements(trial, stage);
    if (piece == 0) return {};
    const bool apart = piece * turns <= kMostAgain * all;
    if (apart && turns > 1 && piece * bytes <= room) return InsidePlace{loop, false};
    if (apart) continue;
    Schedule rolling = trial;
    if (!rolling.try_apply(Step{"rolling_buffer", {{"stage", stage}}})) return {};
    const double ring = stored_elements(rolling, stage);
    if (ring == 0 || ring * bytes > room) return {};
    return InsidePlace{loop, true};
  }
  return {};
}

}  // namespace tensmith
