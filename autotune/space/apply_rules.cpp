#include <algorithm>
#include <utility>

#include "autotune/space/rules.h"

namespace tensmith {

namespace {

bool contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

RuleSite site_of(const ScheduleDraft& draft, const std::string& root, std::vector<std::string> cone) {
  RuleSite site{root, std::move(cone), {}, false};
  for (const std::string& name : site.cone) {
    const StageNode& stage = *draft.stage(name).stage;
    if (!stage.reducer) continue;
    site.reductions.push_back(name);
    site.many_outputs |= stage.outputs.size() > 1;
  }
  return site;
}

/// Lets the chooser take one of the rules that serve the site, and that rule schedule it.
std::vector<std::string> serve(ScheduleDraft& draft, const SpaceRules& rules, const RuleSite& site) {
  Question question(site.root, "rule");
  std::vector<std::pair<std::string, double>> fitting;
  for (const SpaceRule* rule : rules)
    if (const std::optional<double> cost = rule->match(draft, site)) fitting.emplace_back(rule->name(), *cost);
  TS_CHECK(!fitting.empty()) << "no rule serves stage " << site.root;
  for (const auto& [name, cost] : fitting) question.offer(name, cost);
  const std::string taken = draft.decide_word(std::move(question));
  draft.rules.push_back(site.root + ": " + taken);
  for (const SpaceRule* rule : rules)
    if (rule->name() == taken) return rule->apply(draft, site);
  TS_UNREACHABLE() << "rule " << taken << " is in no list";
}

/// The loops of a scheduled root at which a stage that it needs may be computed, outermost first.
std::vector<std::string> places_in(const ScheduleDraft& draft, const std::string& root, const std::string& stage) {
  std::vector<std::string> places;
  const StageState& s = draft.stage(root);
  for (const int loop : s.order) {
    // From the first unrolled or vectorised loop on a copy for each iteration would be computed.
    if (s.loops[loop].kind != ForKind::kSerial && s.loops[loop].kind != ForKind::kParallel) break;
    Schedule trial = draft.schedule;
    const Step step{"compute_at", {{"stage", stage}, {"consumer", root}, {"loop", s.loops[loop].name}}};
    if (trial.try_apply(step)) places.push_back(s.loops[loop].name);
  }
  return places;
}

/// Decides where a stage that the root's rule left is computed: at root, which is left to the caller, or at a loop of
/// the root, which is done here. Returns whether it was done.
bool place_inside(ScheduleDraft& draft, const SpaceRules& rules, const std::string& root, const std::string& stage) {
  const StageState& s = draft.stage(stage);
  if (s.stage->stage_kind != StageKind::kCompute || s.attach != AttachKind::kRoot) return false;
  if (draft.stage(root).stage->stage_kind != StageKind::kCompute) return false;
  Question question(stage, "at");
  const std::string at_root = "root";
  question.offer(at_root);
  double cost = 1.2;
  for (const std::string& loop : places_in(draft, root, stage)) question.offer(loop, cost *= 1.1);
  const std::string loop = draft.decide_word(std::move(question.prefer(at_root)));
  if (loop == at_root) return false;
  // What runs inside a loop of the root has no threads of its own.
  struct Restore {
    int& threads;
    const int before;
    ~Restore() { threads = before; }
  } restore{draft.threads, std::exchange(draft.threads, 1)};
  serve(draft, rules, site_of(draft, stage, {}));
  draft.schedule.compute_at(stage, root, loop);
  draft.explain(stage, "computed at loop " + loop + " of " + root);
  return true;
}

/// Decides how a stage that is computed at root lies in memory: with its last axis innermost, or with another one, as
/// its readers or its own operands may like better.
void decide_layout(ScheduleDraft& draft, const std::string& stage) {
  const StageState& s = draft.stage(stage);
  const int rank = static_cast<int>(s.stage->axes.size());
  if (s.stage->stage_kind != StageKind::kCompute || s.attach != AttachKind::kRoot || rank < 2 ||
      s.stage->outputs.size() != 1 || draft.schedule.state().is_output(draft.index_of(stage)) ||
      !s.layouts[0].dims().empty())
    return;
  // Vectors along an open size would get a body for every remainder.
  int64_t known;
  for (const Axis& axis : s.stage->axes)
    if (!as_const_int(axis.extent, &known)) return;
  const auto layout_with = [&](int innermost) {
    std::string text;
    for (int d = 0; d < rank; ++d)
      if (d != innermost) text += std::to_string(d) + ",";
    return text + std::to_string(innermost);
  };
  Question question(stage, "innermost");
  question.offer(int64_t{rank - 1});
  for (int d = 0; d + 1 < rank; ++d) {
    if (ScheduleDraft::size_of(s.stage->axes[static_cast<size_t>(d)].extent) == 1) continue;
    Schedule trial = draft.schedule;
    const Step step{"transform_layout", {{"stage", stage}, {"layout", layout_with(d)}, {"output", int64_t{0}}}};
    if (trial.try_apply(step)) question.offer(int64_t{d}, 1.5);
  }
  const int64_t innermost = draft.decide_number(std::move(question.prefer(int64_t{rank - 1})));
  if (innermost != rank - 1) draft.schedule.transform_layout(stage, layout_with(static_cast<int>(innermost)));
}

}  // namespace

void apply_rules(ScheduleDraft& draft, const SpaceRules& rules) {
  inline_cheap_stages(draft);
  // Roots: outputs, and whatever does not fit into the loops of one of its readers.
  std::vector<std::string> roots;
  for (const Tensor& output : draft.schedule.workload().outputs) {
    const int index = draft.schedule.state().producer_of(output.buffer().get());
    const std::string& name = draft.schedule.state().stages[index].name;
    if (!contains(roots, name)) roots.push_back(name);
  }
  std::vector<std::string> open = roots;
  while (!open.empty()) {
    const std::string root = open.back();
    open.pop_back();
    const RuleSite site = site_of(draft, root, cone_of(draft, root, roots));
    const bool is_compute = draft.stage(root).stage->stage_kind == StageKind::kCompute;
    const std::vector<std::string> left = is_compute ? serve(draft, rules, site) : site.cone;
    // Readers first: then the loops are known at which a stage can be computed.
    std::vector<std::string> inside;
    for (auto name = left.rbegin(); name != left.rend(); ++name)
      if (place_inside(draft, rules, root, *name)) inside.push_back(*name);
    for (const std::string& name : left) {
      if (contains(inside, name)) continue;
      decide_layout(draft, name);
      roots.push_back(name);
      open.push_back(name);
    }
  }
  // Stages that only imperative stages or several roots read.
  for (size_t k = draft.schedule.state().stages.size(); k-- > 0;) {
    const StageState s = draft.schedule.state().stages[k];
    if (s.stage->stage_kind != StageKind::kCompute || s.attach != AttachKind::kRoot) continue;
    if (contains(roots, s.name) || !s.relations.empty() ||
        draft.schedule.state().consumers_of(static_cast<int>(k)).empty())
      continue;
    serve(draft, rules, site_of(draft, s.name, {}));
  }
}

}  // namespace tensmith
