#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "autotune/schedule_rules.h"
#include "autotune/tile_plan.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

// Loops over the entries of a small matrix are unrolled up to this extent.
constexpr int64_t kMaxUnrolled = 8;
// What one core gets a cycle from beyond L2 and from L2. Units: bytes. Source: notes/cpu.md section 1.
constexpr double kFarBytes = 4, kNearBytes = 32;
// The work of a piece is about that of moving what lies between its stages so many times.
constexpr double kMoves = 4;

/// A stage of the chain and what is decided about its loops.
struct Link {
  std::string name;
  std::set<int> unrolled;  ///< axes whose value selects an expression, or that index such an axis
  int vector_axis = -1;
  bool in_registers = false;
  std::string user;  ///< of a stage in registers: the one that reads it
};

/// Axes of the stage that its body compares with constants to select an expression.
std::set<int> selecting_axes(const StageNode& body) {
  std::set<int> axes;
  for (const Expr& e : body.bodies)
    visit(e, [&](const Expr& node) {
      if (const auto* b = node.as<Binary>(); b && b->op == BinaryOp::kEQ)
        for (size_t a = 0; a < body.axes.size(); ++a)
          if (is_var(b->a, body.axes[a].var) && ScheduleDraft::size_of(body.axes[a].extent) <= kMaxUnrolled)
            axes.insert(static_cast<int>(a));
      return true;
    });
  return axes;
}

/// Axes whose remainder by a constant selects an expression, with that constant.
std::map<int, int64_t> selecting_remainders(const StageNode& body) {
  std::map<int, int64_t> divisors;
  const auto look = [&](const Expr& e) {
    visit(e, [&](const Expr& node) {
      const auto* b = node.as<Binary>();
      int64_t divisor;
      if (b && b->op == BinaryOp::kFloorMod && as_const_int(b->b, &divisor) && divisor <= kMaxUnrolled)
        for (size_t a = 0; a < body.axes.size(); ++a)
          if (is_var(b->a, body.axes[a].var)) divisors[static_cast<int>(a)] = divisor;
      return true;
    });
  };
  for (const Expr& e : body.bodies) look(e);
  return divisors;
}

std::string loop_of(const ScheduleDraft& draft, const std::string& stage, int axis) {
  const StageState& s = draft.stage(stage);
  return s.loops[s.axis_loops[axis]].name;
}

double bytes_of(const StageNode& stage) {
  double bytes = static_cast<double>(stage.outputs[0]->dtype.bytes());
  for (const Axis& axis : stage.axes) bytes *= static_cast<double>(ScheduleDraft::size_of(axis.extent));
  return bytes;
}

/// A chain of stages around one register tile: some bring the operands into form, some make the result of the
/// products, all of them by small constant matrices whose loops are unrolled.
class Chain {
 public:
  Chain(ScheduleDraft& draft, std::string root, const std::vector<std::string>& cone, std::string reduction)
      : draft_(draft), root_(std::move(root)), cone_(cone), reduction_(std::move(reduction)) {}

  bool plan() {
    const Stage body = draft_.effective(root_);
    remainders_ = selecting_remainders(*body);
    if (remainders_.empty()) return false;
    const std::vector<int> order = draft_.storage_order(draft_.stage(root_));
    root_vector_ = order.back();
    if (remainders_.count(root_vector_)) return false;
    for (int axis : order)
      if (axis != root_vector_) outer_axes_.push_back(axis);
    // Consumers first, so that a stage's reader is known before it.
    for (auto name = cone_.rbegin(); name != cone_.rend(); ++name) {
      if (*name == reduction_) continue;
      const Stage stage = draft_.effective(*name);
      if (stage->outputs.size() != 1) return false;
      const std::vector<int> storage = draft_.storage_order(draft_.stage(*name));
      Link link{*name, selecting_axes(*stage), storage.empty() ? -1 : storage.back(), false, {}};
      if (link.vector_axis < 0 || link.unrolled.count(link.vector_axis)) return false;
      const std::vector<int> users = draft_.schedule.state().consumers_of(draft_.index_of(*name));
      if (!link.unrolled.empty() && users.size() == 1) {
        const std::string& user = draft_.schedule.state().stages[users[0]].name;
        link.in_registers = user == root_ || (find(user) && !find(user)->unrolled.empty());
        link.user = user;
      }
      links_.push_back(std::move(link));
    }
    for (Link& link : links_)
      if (link.in_registers) match_user(link);
    return true;
  }

  void apply() {
    Schedule& schedule = draft_.schedule;
    const std::string at = schedule_root();
    const std::string vectors = root_vectors_;
    for (const Link& link : links_) {
      if (!behind_reduction(link.name)) continue;
      schedule.compute_at(link.name, root_, link.in_registers ? vectors : at);
      schedule_link(link);
    }
    schedule.compute_at(reduction_, root_, at);
    for (const Link& link : links_) {
      if (behind_reduction(link.name)) continue;
      if (link.in_registers) schedule.compute_at(link.name, link.user, outer_vector_loop_.at(link.user));
      else schedule.compute_at(link.name, root_, at);
      schedule_link(link);
    }
  }

 private:
  Link* find(const std::string& name) {
    const auto it = std::find_if(links_.begin(), links_.end(), [&](const Link& l) { return l.name == name; });
    return it == links_.end() ? nullptr : &*it;
  }

  bool behind_reduction(const std::string& name) const {
    std::vector<int> open{draft_.index_of(name)};
    while (!open.empty()) {
      const int index = open.back();
      open.pop_back();
      for (size_t p = 0; p < draft_.schedule.state().stages.size(); ++p) {
        const std::vector<int> users = draft_.schedule.state().consumers_of(static_cast<int>(p));
        if (std::find(users.begin(), users.end(), index) == users.end()) continue;
        if (draft_.schedule.state().stages[p].name == reduction_) return true;
        if (draft_.schedule.state().stages[p].stage->stage_kind == StageKind::kCompute)
          open.push_back(static_cast<int>(p));
      }
    }
    return false;
  }

  /// A stage in registers is indexed by constants once its reader is unrolled: axes that the reader indexes with what
  /// is unrolled there are unrolled here, and the other way round.
  void match_user(Link& link) {
    const Stage user = draft_.effective(link.user);
    Link* reader = find(link.user);
    for (const TensorAccess& access : accesses_of(draft_.schedule.state(), *user)) {
      if (draft_.schedule.state().stages[access.producer].name != link.name) continue;
      for (size_t d = 0; d < access.indices.size(); ++d) {
        const Expr& index = access.indices[d];
        for (size_t a = 0; a < user->axes.size(); ++a) {
          if (!is_var(index, user->axes[a].var)) continue;
          if (reader && link.unrolled.count(static_cast<int>(d))) reader->unrolled.insert(static_cast<int>(a));
          if (reader && reader->unrolled.count(static_cast<int>(a))) link.unrolled.insert(static_cast<int>(d));
        }
        const auto* b = index.as<Binary>();
        if (collect_vars(index).empty() || (b && b->op == BinaryOp::kFloorMod))
          link.unrolled.insert(static_cast<int>(d));
      }
    }
  }

  /// Tiles of the root's rows and columns as its remainders say, in pieces whose operands stay in L2. Returns the loop
  /// over the pieces.
  std::string schedule_root() {
    Schedule& schedule = draft_.schedule;
    std::vector<std::string> outer, inner;
    std::vector<int64_t> extents;
    for (int axis : outer_axes_) {
      const std::string loop = loop_of(draft_, root_, axis);
      const int64_t extent = ScheduleDraft::size_of(draft_.stage(root_).stage->axes[axis].extent);
      const auto divisor = remainders_.find(axis);
      if (divisor == remainders_.end()) {
        outer.push_back(loop);
        extents.push_back(extent);
        continue;
      }
      schedule.split(root_, loop, divisor->second, loop + ".o", loop + ".i");
      outer.push_back(loop + ".o");
      inner.push_back(loop + ".i");
      extents.push_back((extent + divisor->second - 1) / divisor->second);
    }
    size_t depth = 0;
    const int64_t piece = choose_piece(extents, &depth);
    const std::string cut = outer[depth];
    std::string at = cut + ".c";
    schedule.split(root_, cut, piece, at, cut + ".t");
    std::vector<std::string> loops(outer.begin(), outer.begin() + static_cast<std::ptrdiff_t>(depth));
    // One share a thread, so that the pieces of a thread use the same memory one after the other.
    const int64_t pieces = (extents[depth] + piece - 1) / piece;
    const int64_t shares = std::min<int64_t>(draft_.threads, pieces);
    const bool parallel = shares > 1 && draft_.decide_yes(root_, "shared_out", true, static_cast<double>(shares));
    if (parallel) {
      schedule.split(root_, at, (pieces + shares - 1) / shares, at + ".p", at + ".s", Tail::kGuard);
      loops.push_back(at + ".p");
      at += ".s";
    }
    loops.push_back(at);
    loops.push_back(cut + ".t");
    loops.insert(loops.end(), outer.begin() + static_cast<std::ptrdiff_t>(depth) + 1, outer.end());
    const std::string vector = loop_of(draft_, root_, root_vector_);
    const int lanes = draft_.lanes_for(draft_.stage(root_).stage->outputs[0]->dtype);
    root_vectors_ = vector + ".o";
    schedule.split(root_, vector, lanes, root_vectors_, vector + ".l");
    loops.push_back(root_vectors_);
    std::vector<std::string> all = loops;
    all.insert(all.end(), inner.begin(), inner.end());
    all.push_back(vector + ".l");
    schedule.reorder(root_, all);
    schedule.vectorize(root_, vector + ".l");
    for (const std::string& loop : inner) schedule.unroll(root_, loop);
    std::ostringstream text;
    text << "tiles in pieces of " << piece << " of " << extents[depth] << " along " << cut;
    draft_.explain(root_, text.str());
    if (parallel) {
      loops.resize(depth + 1);
      draft_.parallelize(root_, loops, chain_cycles_);
    }
    return at;
  }

  /// How many iterations of which outer loop go together: what lies between the stages should stay in L2, every piece
  /// reads the constant operands again, and the threads shall end together.
  int64_t choose_piece(const std::vector<int64_t>& extents, size_t* depth) {
    const auto l2 = static_cast<double>(draft_.target().l2_bytes);
    // Two neighbours of the chain are in use at a time.
    double largest = bytes_of(*draft_.stage(reduction_).stage), second = 0, constants = 0;
    for (const Link& link : links_) {
      if (link.in_registers) continue;
      const double bytes = bytes_of(*draft_.stage(link.name).stage);
      second = std::max(second, std::min(largest, bytes));
      largest = std::max(largest, bytes);
    }
    for (const StageState& s : draft_.schedule.state().stages)
      if (s.stage->is_constant) constants += bytes_of(*s.stage);
    double between = largest + second;
    chain_cycles_ = between / kNearBytes * kMoves;
    for (*depth = 0; *depth + 1 < extents.size(); ++*depth) {
      between /= static_cast<double>(extents[*depth]);
      if (extents[*depth] > 1 && between <= l2 / 2) break;
    }
    if (*depth + 1 == extents.size()) between /= static_cast<double>(extents[*depth]);
    const int64_t extent = extents[*depth];
    int64_t best = 1;
    double least = 0;
    Question question(root_, "piece");
    for (int64_t piece = 1; piece <= extent; ++piece) {
      const int64_t turns = ((extent + piece - 1) / piece + draft_.threads - 1) / draft_.threads;
      const double held = static_cast<double>(piece) * between;
      const double again = turns > 1 && constants + held < l2 / 2 ? constants / kNearBytes : constants / kFarBytes;
      const double spilled = std::max(0.0, held - l2 / 2) * 2 / kFarBytes;
      // A smaller last piece is a second copy of the code.
      const double copies = extent % piece ? 1.05 : 1;
      const double cycles = copies * static_cast<double>(turns) * (held / kNearBytes * kMoves + again + spilled);
      if (least == 0 || cycles <= least) {
        least = cycles;
        best = piece;
      }
      // Many pieces differ little; those that divide the extent or are powers of two are told apart.
      if (extent % piece == 0 || (piece & (piece - 1)) == 0) question.offer(piece, std::max(cycles, 1.0));
    }
    return draft_.decide_number(std::move(question.prefer(best)));
  }

  void schedule_link(const Link& link) {
    Schedule& schedule = draft_.schedule;
    const StageState& s = draft_.stage(link.name);
    const int lanes = draft_.lanes_for(s.stage->outputs[0]->dtype);
    std::vector<std::string> loops, inner;
    for (int axis : draft_.storage_order(s)) {
      if (axis == link.vector_axis) continue;
      (link.unrolled.count(axis) ? inner : loops).push_back(loop_of(draft_, link.name, axis));
    }
    const std::string vector = loop_of(draft_, link.name, link.vector_axis);
    schedule.split(link.name, vector, lanes, vector + ".o", vector + ".l");
    loops.push_back(vector + ".o");
    outer_vector_loop_[link.name] = vector + ".o";
    loops.insert(loops.end(), inner.begin(), inner.end());
    loops.push_back(vector + ".l");
    schedule.reorder(link.name, loops);
    schedule.vectorize(link.name, vector + ".l");
    for (const std::string& loop : inner) schedule.unroll(link.name, loop);
    if (link.in_registers) schedule.set_scope(link.name, "register");
  }

  ScheduleDraft& draft_;
  const std::string root_;
  const std::vector<std::string>& cone_;
  const std::string reduction_;
  std::vector<Link> links_;  // consumers first
  std::map<int, int64_t> remainders_;
  std::vector<int> outer_axes_;
  int root_vector_ = -1;
  std::string root_vectors_;
  std::map<std::string, std::string> outer_vector_loop_;
  double chain_cycles_ = 0;
};

/// The pieces are what runs in parallel, not the tiles inside them.
bool schedule_tile_serially(ScheduleDraft& draft, const std::string& reduction, const std::string& tile) {
  const OneThread inside(draft);
  return schedule_tile(draft, reduction, tile);
}

}  // namespace

bool tile_chain_suits(const ScheduleDraft& draft, const std::string& root, const std::vector<std::string>& cone,
                      const std::string& reduction) {
  if (cone.size() < 2 || draft.stage(reduction).stage->outputs.size() != 1) return false;
  ScheduleDraft trial = draft;
  if (!Chain(trial, root, cone, reduction).plan()) return false;
  const std::string tile = trial.fresh(reduction + "_acc");
  trial.schedule.cache_write(reduction, tile);
  return plan_tile(trial, reduction, tile).has_value();
}

bool schedule_tile_chain(ScheduleDraft& draft, const std::string& root, const std::vector<std::string>& cone,
                         const std::string& reduction) {
  if (cone.size() < 2 || draft.stage(reduction).stage->outputs.size() != 1) return false;
  Chain chain(draft, root, cone, reduction);
  if (!chain.plan()) return false;
  const Schedule saved = draft.schedule;
  const std::string tile = draft.fresh(reduction + "_acc");
  draft.schedule.cache_write(reduction, tile);
  if (!schedule_tile_serially(draft, reduction, tile)) {
    draft.schedule = saved;
    return false;
  }
  chain.apply();
  return true;
}

}  // namespace tensmith
