#include <algorithm>
#include <utility>

#include "autotune/inside_place.h"
#include "autotune/space/rules.h"
#include "tensor/walk.h"

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

/// Products of the cone with what makes elements of their results: each is a site of its own, also where stages between
/// it and the root are served together.
std::vector<std::string> products_of(const ScheduleDraft& draft, const std::vector<std::string>& cone) {
  std::vector<std::string> products;
  for (const std::string& name : cone) {
    const std::vector<std::string> readers = readers_of(draft, name);
    const bool has_epilogue = std::any_of(readers.begin(), readers.end(), [&](const std::string& reader) {
      return !draft.stage(reader).stage->reducer && is_product(draft, reader);
    });
    if (is_product(draft, name) && !has_epilogue) products.push_back(name);
  }
  return products;
}

/// Rows of what lies in memory only inside the kernel need not be a multiple of 4 KiB apart.
void lengthen_rows(ScheduleDraft& draft, const std::vector<std::string>& stages) {
  for (const std::string& name : stages) {
    const StageNode& stage = *draft.stage(name).stage;
    if (stage.axes.size() > 1)
      (void)draft.schedule.try_apply(
          Step{"storage_align", {{"stage", name}, {"elements", int64_t{draft.lanes_for(stage.outputs[0]->dtype)}}}});
  }
}

/// Stages of the schedule that are computed at root and were not there before.
std::vector<std::string> added_at_root(const ScheduleDraft& draft, const Schedule& before) {
  std::vector<std::string> added;
  for (const StageState& s : draft.schedule.state().stages)
    if (s.stage->stage_kind == StageKind::kCompute && s.attach == AttachKind::kRoot && !before.state().find(s.name))
      added.push_back(s.name);
  return added;
}

/// Decides where a stage that the root's rule left is computed: at root, which is left to the caller, or at a loop of
/// the root, which is done here with the part of its cone that its own rule takes. Returns whether it was done.
bool place_inside(ScheduleDraft& draft, const SpaceRules& rules, const std::string& root, const std::string& stage,
                  const std::vector<std::string>& roots) {
  const StageState& s = draft.stage(stage);
  if (s.stage->stage_kind != StageKind::kCompute || s.attach != AttachKind::kRoot) return false;
  if (draft.stage(root).stage->stage_kind != StageKind::kCompute) return false;
  const std::vector<std::string> places = places_in(draft, root, stage);
  const std::optional<InsidePlace> liked =
      leads_from_product(draft, stage)
          ? choose_inside_place(draft, root, stage, places, near_bytes(draft.target()), /*may_roll=*/true)
          : std::nullopt;
  const Schedule before = draft.schedule;
  const size_t points = draft.points.size(), served = draft.rules.size(), said = draft.explanation.size();
  Question question(stage, "at");
  const std::string at_root = "root";
  question.offer(at_root, liked ? 1.3 : 1);
  double cost = 1.2;
  for (const std::string& place : places) question.offer(place, cost *= 1.1);
  const std::string loop = draft.decide_word(std::move(question.prefer(liked ? liked->loop : at_root)));
  if (loop == at_root) return false;
  // What runs inside a loop of the root has no threads of its own.
  const OneThread one_thread(draft);
  struct Inside {
    ScheduleDraft& draft;
    explicit Inside(ScheduleDraft& draft) : draft(draft) { draft.inside = true; }
    ~Inside() {
      draft.inside = false;
      draft.pieces.clear();
    }
  } const inside(draft);
  const bool rolls = liked && liked->loop == loop && liked->rolling;
  if (!rolls)
    if (std::vector<int64_t> piece = piece_of(draft, root, stage, loop); !piece.empty())
      draft.pieces[stage] = std::move(piece);
  serve(draft, rules, site_of(draft, stage, cone_of(draft, stage, roots)));
  const auto compute_at = [&](const std::string& name, const std::string& at) {
    return static_cast<bool>(
        draft.schedule.try_apply(Step{"compute_at", {{"stage", name}, {"consumer", root}, {"at", at}}}));
  };
  bool placed = compute_at(stage, loop);
  // Copies of operands that its rule made serve every piece: where they stay near, else once for all.
  const std::vector<std::string> copies = added_at_root(draft, before);
  lengthen_rows(draft, copies);
  for (const std::string& copy : copies) {
    const std::optional<InsidePlace> kept = choose_inside_place(draft, root, copy, places_in(draft, root, copy),
                                                                near_copy_bytes(draft.target()), /*may_roll=*/false);
    if (!kept) continue;  // a site of its own at root
    serve(draft, rules, site_of(draft, copy, {}));
    placed = placed && compute_at(copy, kept->loop);
  }
  if (placed && can_roll(draft.schedule, stage) && draft.decide_yes(stage, "rolling", rolls, rolls ? 2 : 1.1))
    draft.schedule.apply(Step{"rolling_buffer", {{"stage", stage}}});
  if (!placed || !can_lower(draft.schedule)) {
    // Its own rule and this place do not go together: as if the place had never been offered.
    draft.schedule = before;
    draft.points.resize(points);
    draft.rules.resize(served);
    draft.explanation.resize(said);
    return false;
  }
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

/// Whether a product lies behind another reduction, the root or one that the root reads: two of the graph's operators
/// share the kernel.
bool feeds_on_product(const ScheduleDraft& draft, const RuleSite& site) {
  const bool root_reduces = draft.stage(site.root).stage->reducer.has_value();
  return std::any_of(site.reductions.begin(), site.reductions.end(), [&](const std::string& name) {
    const bool direct = contains(readers_of(draft, name), site.root);
    return is_product(draft, name) && (root_reduces || (!direct && site.reductions.size() >= 2));
  });
}

/// Stages that the root's cone holds lie in memory as their readers walk them: where a reader's storage has another
/// axis innermost than the last one (channels), so has what it reads.
void follow_layouts(ScheduleDraft& draft, const std::vector<std::string>& cone) {
  for (auto name = cone.rbegin(); name != cone.rend(); ++name) {
    const StageState& s = draft.stage(*name);
    if (s.stage->outputs.size() != 1 || !s.layouts[0].dims().empty() || s.attach != AttachKind::kRoot) continue;
    const int index = draft.index_of(*name);
    const std::vector<std::string> readers = readers_of(draft, *name);
    if (readers.empty()) continue;
    const StageState user = draft.stage(readers.front());
    if (user.stage->stage_kind != StageKind::kCompute || user.layouts[0].dims().empty()) continue;
    const std::vector<int> order = draft.storage_order(user);
    const size_t rank = s.stage->axes.size();
    // Where in the user's storage the axis stands that moves along a dim; what only a reduction moves along is
    // innermost.
    std::vector<size_t> position(rank, order.size());
    for (const TensorAccess& access : accesses_of(draft.schedule.state(), *draft.effective(user.name))) {
      if (access.producer != index) continue;
      for (size_t d = 0; d < rank; ++d)
        for (size_t k = 0; k < order.size(); ++k)
          if (uses_var(access.indices[d], user.stage->axes[static_cast<size_t>(order[k])].var)) position[d] = k;
      break;
    }
    std::vector<size_t> dims(rank);
    for (size_t d = 0; d < rank; ++d) dims[d] = d;
    std::stable_sort(dims.begin(), dims.end(), [&](size_t a, size_t b) { return position[a] < position[b]; });
    std::string layout;
    for (const size_t d : dims) layout += (layout.empty() ? "" : ",") + std::to_string(d);
    if (std::is_sorted(dims.begin(), dims.end())) continue;
    (void)draft.schedule.try_apply(
        Step{"transform_layout", {{"stage", *name}, {"layout", layout}, {"output", int64_t{0}}}});
  }
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
    if (feeds_on_product(draft, site)) {
      follow_layouts(draft, site.cone);
      lengthen_rows(draft, site.cone);
    }
    const bool is_compute = draft.stage(root).stage->stage_kind == StageKind::kCompute;
    const std::vector<std::string> left = is_compute ? serve(draft, rules, site) : site.cone;
    // Readers first: then the loops are known at which a stage can be computed.
    std::vector<std::string> apart, taken, sites = roots;
    const std::vector<std::string> products = products_of(draft, left);
    sites.insert(sites.end(), products.begin(), products.end());
    for (auto name = left.rbegin(); name != left.rend(); ++name) {
      if (draft.stage(*name).attach != AttachKind::kRoot) continue;  // by the rule of one of its readers
      if (contains(taken, *name) || place_inside(draft, rules, root, *name, sites)) continue;
      apart.push_back(*name);
      roots.push_back(*name);
      sites.push_back(*name);
      // What serves it alone is left to its rule.
      const std::vector<std::string> cone = cone_of(draft, *name, sites);
      taken.insert(taken.end(), cone.begin(), cone.end());
    }
    for (auto name = apart.rbegin(); name != apart.rend(); ++name) {
      decide_layout(draft, *name);
      open.push_back(*name);
    }
  }
  // Stages that only imperative stages or several roots read, and copies of operands.
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
