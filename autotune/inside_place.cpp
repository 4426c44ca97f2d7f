#include "autotune/inside_place.h"

#include <algorithm>
#include <map>
#include <set>

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

/// The storage that a stage inside others gets, the largest where loops were peeled; empty when the schedule is
/// illegal.
std::vector<int64_t> stored_extents(const Target& target, const Schedule& schedule, const std::string& stage) {
  std::vector<int64_t> largest;
  double most = 0;
  try {
    visit(build_loop_nests(schedule.state(), target.line_bytes).body, [&](const Stmt& s) {
      const auto* a = s.as<Allocate>();
      if (!a || a->buffer->name != stage) return true;
      std::vector<int64_t> extents;
      double elements = 1;
      for (const Expr& extent : a->buffer->shape) {
        extents.push_back(ScheduleDraft::size_of(extent));
        elements *= static_cast<double>(extents.back());
      }
      if (elements > most) {
        most = elements;
        largest = std::move(extents);
      }
      return true;
    });
  } catch (const ScheduleError&) {
    return {};
  }
  return largest;
}

/// Its elements; 0 when the schedule is illegal.
double stored_elements(const Target& target, const Schedule& schedule, const std::string& stage) {
  const std::vector<int64_t> extents = stored_extents(target, schedule, stage);
  double elements = extents.empty() ? 0 : 1;
  for (const int64_t extent : extents) elements *= static_cast<double>(extent);
  return elements;
}

Schedule with_stage_at(const Schedule& schedule, const std::string& stage, const std::string& root,
                       const std::string& loop) {
  Schedule trial = schedule;
  trial.compute_at(stage, root, loop);
  return trial;
}

bool reads_something(const Expr& e) {
  bool found = false;
  visit(e, [&](const Expr& node) {
    found |= node.kind() == NodeKind::kLoad;
    return !found;
  });
  return found;
}

bool multiplies_operands(const StageNode& body) {
  bool found = false;
  visit(body.bodies.front(), [&](const Expr& e) {
    const auto* b = e.as<Binary>();
    found |= b && b->op == BinaryOp::kMul && reads_something(b->a) && reads_something(b->b);
    return !found;
  });
  return found;
}

}  // namespace

bool is_product(const ScheduleDraft& draft, const std::string& stage) {
  const StageState& s = draft.stage(stage);
  if (s.stage->stage_kind != StageKind::kCompute || s.stage->outputs.size() != 1) return false;
  const Stage body = draft.effective(stage);
  if (body->reducer) return accesses_of(draft.schedule.state(), *body).size() > 1 && multiplies_operands(*body);
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

std::vector<int64_t> piece_of(const ScheduleDraft& draft, const std::string& root, const std::string& stage,
                              const std::string& loop) {
  const StageState& s = draft.stage(stage);
  // Storage in another order does not tell which axis is which.
  if (s.stage->outputs.size() != 1 || !s.layouts[0].dims().empty()) return {};
  std::vector<int64_t> extents =
      stored_extents(draft.target(), with_stage_at(draft.schedule, stage, root, loop), stage);
  if (extents.size() != s.stage->axes.size()) return {};
  for (size_t d = 0; d < extents.size(); ++d)  // rows may be lengthened
    extents[d] = std::min(extents[d], ScheduleDraft::size_of(s.stage->axes[d].extent));
  return extents;
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

bool leads_from_product(const ScheduleDraft& draft, const std::string& stage) {
  std::set<std::string> seen{stage};
  std::vector<std::string> open{stage};
  while (!open.empty()) {
    const std::string next = open.back();
    open.pop_back();
    if (is_product(draft, next)) return true;
    for (const TensorAccess& access : accesses_of(draft.schedule.state(), *draft.effective(next))) {
      const StageState& producer = draft.schedule.state().stages[static_cast<size_t>(access.producer)];
      if (producer.stage->stage_kind == StageKind::kCompute && seen.insert(producer.name).second)
        open.push_back(producer.name);
    }
  }
  return false;
}

std::optional<InsidePlace> choose_inside_place(const ScheduleDraft& draft, const std::string& root,
                                               const std::string& stage, const std::vector<std::string>& places,
                                               int64_t room, bool may_roll) {
  const StageNode& node = *draft.stage(stage).stage;
  double all = 1;
  for (const Axis& axis : node.axes) all *= static_cast<double>(ScheduleDraft::size_of(axis.extent));
  const auto bytes = static_cast<double>(node.outputs[0]->dtype.bytes());
  const double nearest = draft.target().l1_bytes / 2.0;
  const std::map<std::string, double> iterations = iterations_of(draft.stage(root));
  const StageState& outer = draft.stage(root);
  const auto fits = [&](double size) { return size <= static_cast<double>(room); };
  // What the root itself reads, element by element, is the larger part of the work and likes large pieces.
  const std::vector<std::string> readers = readers_of(draft, stage);
  const bool is_epilogue = std::find(readers.begin(), readers.end(), root) != readers.end();
  double turns = 1;
  size_t passed = 0;  // loops of the root that are around the place, those included that are no place
  std::optional<InsidePlace> found;
  for (const std::string& loop : places) {
    for (bool around = true; around; ++passed) {
      const std::string& name = outer.loops[static_cast<size_t>(outer.order[passed])].name;
      turns *= iterations.at(name);
      around = name != loop;
    }
    const Schedule trial = with_stage_at(draft.schedule, stage, root, loop);
    const double piece = stored_elements(draft.target(), trial, stage);
    if (piece == 0) return found;
    const bool apart = piece * turns <= kMostAgain * all;
    if (found && !apart) return found;
    if (apart && turns > 1 && fits(piece * bytes) && (!found || piece * bytes <= nearest))
      found = InsidePlace{loop, false};
    if (found && (is_epilogue || piece * bytes <= nearest)) return found;
    if (apart) continue;
    if (!may_roll) return {};
    Schedule rolling = trial;
    if (!rolling.try_apply(Step{"rolling_buffer", {{"stage", stage}}})) return {};
    const double ring = stored_elements(draft.target(), rolling, stage);
    if (ring == 0 || !fits(ring * bytes)) return {};
    return InsidePlace{loop, true};
  }
  return found;
}

}  // namespace tensmith
