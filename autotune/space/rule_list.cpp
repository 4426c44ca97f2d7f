#include <algorithm>

#include "autotune/space/rules.h"
#include "autotune/tile_plan.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

/// Whether the reader uses the reduction at its own innermost axis (so that vectors can run along it).
bool varies_along_vector(const ScheduleDraft& draft, const std::string& reader, const std::string& reduction) {
  const StageState& r = draft.stage(reader);
  const std::vector<int> order = draft.storage_order(r);
  if (order.empty()) return false;
  const Var v = r.stage->axes[order.back()].var;
  const Stage body = draft.effective(reader);
  for (const TensorAccess& access : accesses_of(draft.schedule.state(), *body))
    if (access.producer == draft.index_of(reduction))
      for (const Expr& index : access.indices)
        if (uses_var(index, v)) return true;
  return false;
}

/// A stage without reduction whose cone has some.
bool reads_reductions(const ScheduleDraft& draft, const RuleSite& site) {
  return !draft.stage(site.root).stage->reducer && !site.reductions.empty();
}

/// The reduction that the root reads beside inputs, when that is all it reads of its cone; else empty.
std::string only_reduction_read(const ScheduleDraft& draft, const RuleSite& site) {
  std::string only;
  for (const std::string& name : site.cone) {
    const std::vector<std::string> readers = readers_of(draft, name);
    if (std::find(readers.begin(), readers.end(), site.root) == readers.end()) continue;
    if (!only.empty() || readers.size() != 1 || !draft.stage(name).stage->reducer) return {};
    only = name;
  }
  return only;
}

class TileEpilogue : public SpaceRule {
 public:
  const char* name() const override { return "tile-epilogue"; }
  const char* doc() const override { return "a register tile of the reduction with its reader as the epilogue"; }
  std::optional<double> match(const ScheduleDraft& draft, const RuleSite& site) const override {
    // Either its reduction is all that it needs, or other products feed that one.
    if (!reads_reductions(draft, site) || (site.cone.size() != 1 && site.reductions.size() == 1)) return {};
    const std::string reduction = only_reduction_read(draft, site);
    if (reduction.empty() || !varies_along_vector(draft, site.root, reduction) ||
        !plan_tile(draft, site.root, reduction))
      return {};
    return 1;
  }
  std::vector<std::string> apply(ScheduleDraft& draft, const RuleSite& site) const override {
    const std::string reduction = only_reduction_read(draft, site);
    TS_CHECK(schedule_tile(draft, site.root, reduction)) << site.root << ": a tile that suited does not";
    // What the reduction reads is left.
    std::vector<std::string> left = site.cone;
    std::erase(left, reduction);
    return left;
  }
};

class TileChain : public SpaceRule {
 public:
  const char* name() const override { return "tile-chain"; }
  const char* doc() const override {
    return "pieces of transformed tiles through all stages, one register tile inside";
  }
  std::optional<double> match(const ScheduleDraft& draft, const RuleSite& site) const override {
    if (!reads_reductions(draft, site) || site.reductions.size() != 1 ||
        !tile_chain_suits(draft, site.root, site.cone, site.reductions[0]))
      return {};
    return 1;
  }
  std::vector<std::string> apply(ScheduleDraft& draft, const RuleSite& site) const override {
    TS_CHECK(schedule_tile_chain(draft, site.root, site.cone, site.reductions[0]))
        << site.root << ": a chain that suited does not";
    return {};
  }
};

class Rows : public SpaceRule {
 public:
  const char* name() const override { return "rows"; }
  const char* doc() const override { return "row by row through all stages, reductions in vector lanes"; }
  std::optional<double> match(const ScheduleDraft& draft, const RuleSite& site) const override {
    if (!reads_reductions(draft, site) || site.many_outputs) return {};
    for (const std::string& reduction : site.reductions)
      if (varies_along_vector(draft, site.root, reduction)) return {};
    if (!rows_suit(draft, site.root, site.cone)) return {};
    return 1.5;
  }
  std::vector<std::string> apply(ScheduleDraft& draft, const RuleSite& site) const override {
    TS_CHECK(schedule_rows(draft, site.root, site.cone)) << site.root << ": rows that suited do not";
    return {};
  }
};

class Elementwise : public SpaceRule {
 public:
  const char* name() const override { return "elementwise"; }
  const char* doc() const override { return "vectors along the storage, in parallel over the rest"; }
  std::optional<double> match(const ScheduleDraft& draft, const RuleSite& site) const override {
    if (draft.stage(site.root).stage->reducer) return {};
    return site.reductions.empty() ? 1 : 3;
  }
  std::vector<std::string> apply(ScheduleDraft& draft, const RuleSite& site) const override {
    schedule_elementwise(draft, site.root);
    return site.cone;
  }
};

/// A reduction computed into registers and copied out.
class CachedReduction : public SpaceRule {
 public:
  std::optional<double> match(const ScheduleDraft& draft, const RuleSite& site) const override {
    const StageNode& stage = *draft.stage(site.root).stage;
    if (!stage.reducer || stage.outputs.size() > 1) return {};
    ScheduleDraft trial = draft;
    const std::string inner = trial.fresh(site.root + "_acc");
    trial.schedule.cache_write(site.root, inner);
    return suits(trial, site.root, inner);
  }
  std::vector<std::string> apply(ScheduleDraft& draft, const RuleSite& site) const override {
    const std::string inner = draft.fresh(site.root + "_acc");
    draft.schedule.cache_write(site.root, inner);
    schedule(draft, site.root, inner);
    return site.cone;
  }

 protected:
  virtual std::optional<double> suits(const ScheduleDraft& draft, const std::string& root,
                                      const std::string& inner) const = 0;
  virtual void schedule(ScheduleDraft& draft, const std::string& root, const std::string& inner) const = 0;
};

class Tile : public CachedReduction {
 public:
  const char* name() const override { return "tile"; }
  const char* doc() const override { return "a register tile of the reduction, copied out"; }

 protected:
  std::optional<double> suits(const ScheduleDraft& draft, const std::string& root,
                              const std::string& inner) const override {
    return plan_tile(draft, root, inner) ? std::optional<double>(1) : std::nullopt;
  }
  void schedule(ScheduleDraft& draft, const std::string& root, const std::string& inner) const override {
    TS_CHECK(schedule_tile(draft, root, inner)) << root << ": a tile that suited does not";
  }
};

/// Whether the results along the storage are enough for half a vector, and are all made of as many values by `body`:
/// lanes of which some pass over a step are loaded one by one.
bool results_fill_lanes(const ScheduleDraft& draft, const std::string& stage, const StageNode& body) {
  const StageState& s = draft.stage(stage);
  const std::vector<int> order = draft.storage_order(s);
  int64_t width = 0;
  if (order.empty() || !as_const_int(s.stage->axes[order.back()].extent, &width)) return false;
  if (body.where.get() && uses_var(body.where, body.axes[order.back()].var)) return false;
  return 2 * width >= draft.lanes_for(s.stage->outputs[0]->dtype);
}

class RowLanes : public CachedReduction {
 public:
  const char* name() const override { return "row-lanes"; }
  const char* doc() const override { return "one result after the other, each in vector lanes"; }

 protected:
  std::optional<double> suits(const ScheduleDraft& draft, const std::string& root,
                              const std::string& inner) const override {
    if (!rows_suit(draft, root, {inner})) return {};
    // A reduction of a few steps fills few lanes, and adding them up costs as much again: results fill them better.
    const StageNode& body = *draft.stage(root).stage;
    const int lanes = draft.lanes_for(body.outputs[0]->dtype);
    int64_t longest = 1;
    for (const Axis& axis : draft.stage(inner).stage->reduce_axes)
      longest = std::max(longest, ScheduleDraft::size_of(axis.extent));
    return 2 * longest < lanes && results_fill_lanes(draft, root, *draft.stage(inner).stage) ? 6 : 1.5;
  }
  void schedule(ScheduleDraft& draft, const std::string& root, const std::string& inner) const override {
    TS_CHECK(schedule_rows(draft, root, {inner})) << root << ": rows that suited do not";
  }
};

/// The longest reduce axis with a known extent, or -1.
int longest_reduce_axis(const StageNode& stage) {
  int best = -1;
  int64_t longest = 1;
  for (size_t a = 0; a < stage.reduce_axes.size(); ++a) {
    int64_t extent;
    if (!as_const_int(stage.reduce_axes[a].extent, &extent) || extent <= longest) continue;
    longest = extent;
    best = static_cast<int>(a);
  }
  return best;
}

class SplitReduction : public SpaceRule {
 public:
  const char* name() const override { return "split-reduction"; }
  const char* doc() const override { return "partial results of pieces of a long reduction, then their sum"; }
  std::optional<double> match(const ScheduleDraft& draft, const RuleSite& site) const override {
    const StageNode& stage = *draft.stage(site.root).stage;
    if (!stage.reducer || stage.outputs.size() > 1 || !draft.stage(site.root).relations.empty()) return {};
    const int axis = longest_reduce_axis(stage);
    if (axis < 0) return {};
    double outputs = 1;
    for (const Axis& a : stage.axes) outputs *= static_cast<double>(ScheduleDraft::size_of(a.extent));
    // More outputs keep the threads busy by themselves, and the partial results would cost more than they bring.
    if (outputs > 64.0 * draft.request.threads || ScheduleDraft::size_of(stage.reduce_axes[axis].extent) < kShortest)
      return {};
    return 2;
  }
  std::vector<std::string> apply(ScheduleDraft& draft, const RuleSite& site) const override {
    const StageNode& stage = *draft.stage(site.root).stage;
    const int axis = longest_reduce_axis(stage);
    const int64_t extent = ScheduleDraft::size_of(stage.reduce_axes[axis].extent);
    Question question(site.root, "pieces");
    for (int64_t pieces = 2; pieces <= 64 && extent / pieces >= kShortest / 4; pieces *= 2)
      question.offer(pieces, pieces >= draft.threads ? 1.1 : 2);
    const int64_t pieces = draft.decide_number(std::move(question));
    const std::string loop = draft.stage(site.root).loops[draft.stage(site.root).reduce_loops[axis]].name;
    draft.schedule.split(site.root, loop, (extent + pieces - 1) / pieces, loop + ".o", loop + ".i");
    const std::string partial = draft.fresh(site.root + "_pieces");
    draft.schedule.rfactor(site.root, loop + ".o", partial);
    draft.explain(site.root, "sum of " + std::to_string(pieces) + " pieces");
    // The partial results are a root like any other.
    std::vector<std::string> left = site.cone;
    left.push_back(partial);
    return left;
  }

 private:
  static constexpr int64_t kShortest = 256;
};

/// What serves every reduction.
class PlainLoops : public SpaceRule {
 public:
  const char* name() const override { return "plain-loops"; }
  const char* doc() const override { return "the loops as they stand, results in memory"; }
  std::optional<double> match(const ScheduleDraft& draft, const RuleSite& site) const override {
    if (!draft.stage(site.root).stage->reducer) return {};
    return 4;
  }
  std::vector<std::string> apply(ScheduleDraft& draft, const RuleSite& site) const override {
    const StageState& s = draft.stage(site.root);
    std::vector<std::string> loops;
    double points = 1;
    const std::vector<int> order = draft.storage_order(s);
    for (int axis : order) {
      loops.push_back(s.loops[s.axis_loops[axis]].name);
      points *= static_cast<double>(ScheduleDraft::size_of(s.stage->axes[axis].extent));
    }
    for (const Axis& axis : s.stage->reduce_axes) points *= static_cast<double>(ScheduleDraft::size_of(axis.extent));
    draft.explain(site.root, "serial reduction");
    if (loops.empty()) return site.cone;
    // The loops over results stand outside, also where a step put some inside the reduction.
    std::vector<std::string> reduced;
    bool inside = false;
    for (const int loop : s.order) {
      if (s.loops[loop].is_reduce) reduced.push_back(s.loops[loop].name);
      else inside |= !reduced.empty();
    }
    const int64_t width = ScheduleDraft::size_of(s.stage->axes[order.back()].extent);
    const int lanes = draft.lanes_for(s.stage->outputs[0]->dtype);
    int64_t known = 0;
    const bool is_known = as_const_int(s.stage->axes[order.back()].extent, &known);
    if (width > 1 && (is_known || width > lanes) &&
        draft.decide_yes(site.root, "results_in_lanes", results_fill_lanes(draft, site.root, *s.stage), 1.1)) {
      std::string lane = loops.back();
      loops.pop_back();
      if (width > lanes) {
        draft.schedule.split(site.root, lane, lanes, lane + ".o", lane + ".l");
        loops.push_back(lane + ".o");
        lane += ".l";
      }
      std::vector<std::string> all = loops;
      all.insert(all.end(), reduced.begin(), reduced.end());
      all.push_back(lane);
      draft.schedule.reorder(site.root, all);
      draft.schedule.vectorize(site.root, lane);
    } else {
      std::vector<std::string> all = loops;
      if (inside) all.insert(all.end(), reduced.begin(), reduced.end());
      draft.schedule.reorder(site.root, all);
    }
    draft.parallelize(site.root, loops, points * 2);
    return site.cone;
  }
};

}  // namespace

const SpaceRules& built_in_rules() {
  static const TileEpilogue tile_epilogue;
  static const TileChain tile_chain;
  static const Rows rows;
  static const Elementwise elementwise;
  static const Tile tile;
  static const RowLanes row_lanes;
  static const SplitReduction split_reduction;
  static const PlainLoops plain_loops;
  static const SpaceRules rules{&tile_epilogue, &tile_chain,      &rows,       &elementwise, &tile,
                                &row_lanes,     &split_reduction, &plain_loops};
  return rules;
}

}  // namespace tensmith
