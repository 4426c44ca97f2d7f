#include "autotune/cost_model/kernel_facts.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "autotune/cost_model/footprint.h"

namespace tensmith {

namespace {

constexpr double kL1Ways = 12;
/// Units: cycles from one dependent addition, product or FMA to the next.
constexpr double kArithmeticLatency = 4;
/// Units: cycles that an accumulation in memory adds by way of the store buffer.
constexpr double kForwardingLatency = 5;
/// Units: cycles of a reduction over the lanes of one vector.
constexpr double kLaneReductionLatency = 13;

class FactReader {
 public:
  FactReader(const LoopTree& tree, const Target& target)
      : tree_(tree),
        target_(target),
        sets_(working_sets(tree, target)),
        caches_{static_cast<double>(target.l1_bytes), static_cast<double>(target.l2_bytes),
                static_cast<double>(std::max(target.l3_bytes, target.l2_bytes))} {}

  KernelFacts read() {
    facts_.machine = {static_cast<double>(target_.vector_bits) / 8, static_cast<double>(target_.vector_registers),
                      static_cast<double>(std::max(1, target_.fma_ports)), caches_};
    facts_.threads = tree_.threads;
    facts_.kernel_bytes = sets_[0];
    for (const TreeBuffer& buffer : tree_.buffers) {
      if (buffer.scope == Scope::kRegister) facts_.register_bytes += buffer.bytes;
      if (buffer.scope == Scope::kStack) facts_.stack_bytes += buffer.bytes;
      if (buffer.scope == Scope::kGlobal && !buffer.is_parameter) facts_.workspace_bytes += buffer.bytes;
    }
    runs_.assign(tree_.loops.size(), 1);
    wholes_ = runs_;
    for (size_t l = 1; l < tree_.loops.size(); ++l) {
      const TreeLoop& loop = tree_.loops[l];
      runs_[l] = runs_[static_cast<size_t>(loop.parent)] * loop.run * loop.chance;
      wholes_[l] = wholes_[static_cast<size_t>(loop.parent)] * loop.extent * loop.chance;
    }
    for (size_t s = 0; s < tree_.stores.size(); ++s) add_store(s);
    for (auto& [loop, nest] : nests_) finish(loop, nest);
    read_threads();
    read_intensity();
    return std::move(facts_);
  }

 private:
  static bool is_written_out(const TreeLoop& loop) {
    return loop.kind == ForKind::kVectorized || loop.kind == ForKind::kUnrolled;
  }

  /// Of the innermost loop of the path that is not written out.
  size_t body_depth(const std::vector<int>& path) const {
    size_t d = path.size() - 1;
    while (d > 0 && is_written_out(tree_.loops[path[d]])) --d;
    return d;
  }

  struct Times {
    double per_turn = 1;  ///< instructions
    double lanes = 1;     ///< that each of them fills
    bool is_vector = false;
  };

  /// How often what depends on those loops runs for each turn of the nest: once for all turns of other loops.
  Times times(const std::vector<int>& path, size_t body, uint64_t loops, double element_bytes) const {
    Times out;
    int deepest_serial = static_cast<int>(path.size()) - 1;
    while (deepest_serial > 0 &&
           (is_written_out(tree_.loops[path[static_cast<size_t>(deepest_serial)]]) || !(loops >> deepest_serial & 1)))
      --deepest_serial;
    for (size_t d = body + 1; d < path.size(); ++d) {
      if (!(loops >> d & 1)) continue;
      const TreeLoop& loop = tree_.loops[path[d]];
      if (loop.kind == ForKind::kVectorized) {
        const double width = static_cast<double>(target_.vector_bits) / 8 / element_bytes;
        const double vectors = std::max(1.0, std::ceil(loop.extent / width));
        out.is_vector = true;
        out.lanes = loop.extent / vectors;
        out.per_turn *= vectors;
      } else {
        out.per_turn *= loop.extent;
      }
    }
    // Written out inside some serial loop that it does not depend on: it leaves that loop.
    for (size_t d = body; d > 0 && static_cast<int>(d) > deepest_serial; --d) {
      const TreeLoop& loop = tree_.loops[path[d]];
      if (!is_written_out(loop)) out.per_turn /= std::max(1.0, loop.extent);
    }
    return out;
  }

  void add_store(size_t number) {
    const TreeStore& store = tree_.stores[number];
    const std::vector<int> path = tree_.path(store.loop);
    const size_t body = body_depth(path);
    NestFacts& nest = nests_[path[body]];
    double chance = store.chance, copies = 1, all_copies = 1, vector_extent = 1;
    for (size_t d = 1; d < path.size(); ++d) {
      const TreeLoop& loop = tree_.loops[path[d]];
      if (d > body) chance *= loop.chance;
      if (loop.kind == ForKind::kUnrolled) (d > body ? copies : all_copies) *= loop.extent;
      if (loop.kind == ForKind::kVectorized) vector_extent = loop.extent;
    }
    all_copies *= copies;
    nest.unroll = std::max(nest.unroll, copies);
    nest.vector_extent = std::max(nest.vector_extent, vector_extent);
    nest.statements += all_copies;
    nest.guards = std::max(nest.guards, static_cast<double>(store.guards));
    nest.chance = std::min(nest.chance, chance);
    const double whole = wholes_[static_cast<size_t>(path[body])];
    for (const TreeOp& op : store.ops) {
      const Times t = times(path, body, op.loops, static_cast<double>(op.element_bytes));
      const double count = op.count * t.per_turn * chance;
      nest.ops[static_cast<size_t>(op.kind)] += count;
      if (!t.is_vector) nest.scalar_ops += count;
      nest.lanes = std::max(nest.lanes, t.lanes);
      const double flops = count * t.lanes * whole * (op.kind == OpKind::kFma ? 2 : 1);
      if (op.kind <= OpKind::kSpecial) facts_.flops += flops;
    }
    double least_operand = 0;
    for (const TreeAccess& access : store.accesses) {
      add_access(nest, number, access, path, body, chance, &least_operand);
      if (store.has_vector_guard) nest.masked += copies * chance;
    }
    nest.live = std::max(nest.live, least_operand + 1);
    if (store.accumulates) {
      const TreeAccess& write = store.accesses.back();
      const TreeBuffer& buffer = tree_.buffers[static_cast<size_t>(write.buffer)];
      const uint64_t bits = write.loops;
      if (!(bits >> body & 1)) {
        double updates = 1;
        bool over_lanes = false;
        for (size_t d = body + 1; d < path.size(); ++d) {
          if (bits >> d & 1) continue;
          if (tree_.loops[path[d]].kind == ForKind::kVectorized) over_lanes = true;
          else updates *= tree_.loops[path[d]].extent;
        }
        const double latency = kArithmeticLatency +
                               (buffer.scope == Scope::kRegister || store.guards == 0 ? 0 : kForwardingLatency) +
                               (over_lanes ? kLaneReductionLatency : 0);
        if (body > 0) nest.chain = std::max(nest.chain, updates * latency * chance);
      }
    }
  }

  void add_access(NestFacts& nest, size_t number, const TreeAccess& access, const std::vector<int>& path, size_t body,
                  double chance, double* least_operand) {
    const TreeBuffer& buffer = tree_.buffers[static_cast<size_t>(access.buffer)];
    const auto element = static_cast<double>(buffer.element_bytes);
    const uint64_t bits = access.loops;
    // In a loop that only other statements of it write, a read stays where it is; that a register tells.
    const Times t = times(path, body, bits, element);
    if (buffer.scope == Scope::kRegister) {
      double registers = 1, copies = 1, innermost = 1;
      for (size_t d = body + 1; d < path.size(); ++d) {
        if (!(bits >> d & 1)) continue;
        const TreeLoop& loop = tree_.loops[path[d]];
        if (loop.kind == ForKind::kUnrolled) copies *= innermost, innermost = loop.extent;
        registers *= loop.kind == ForKind::kVectorized
                         ? std::ceil(loop.extent * element * 8 / static_cast<double>(target_.vector_bits))
                         : loop.extent;
      }
      if (access.is_write && registers > nest.accumulators) {
        nest.accumulators = registers;
        // The innermost loop of several goes along a row.
        nest.rows = copies > 1 ? copies : innermost;
        nest.vectors = std::max(1.0, registers / nest.rows);
      }
      return;
    }
    if (access.is_prefetch) {
      nest.prefetches += t.per_turn * chance;
      prefetched_[path[body]].push_back(access.buffer);
      return;
    }
    double lane_stride = 0;
    for (size_t d = body + 1; d < path.size(); ++d)
      if (tree_.loops[path[d]].kind == ForKind::kVectorized) lane_stride = access.strides[d];
    const double count = t.per_turn * chance;
    if (access.is_opaque && (nest.vector_extent > 1)) nest.gathers += count * t.lanes;
    else if (t.is_vector && std::abs(lane_stride) != 1) nest.strided += count * t.lanes;
    else if (access.is_write) nest.stores += count;
    else (t.is_vector ? nest.vector_loads : nest.scalar_loads) += count;
    if (!access.is_write) *least_operand = *least_operand == 0 ? t.per_turn : std::min(*least_operand, t.per_turn);
    add_traffic(nest, number, access, path, body, chance, lane_stride);
  }

  void add_traffic(NestFacts& nest, size_t number, const TreeAccess& access, const std::vector<int>& path, size_t body,
                   double chance, double lane_stride) {
    const TreeBuffer& buffer = tree_.buffers[static_cast<size_t>(access.buffer)];
    AccessFacts out;
    const double turns = runs_[static_cast<size_t>(path[body])];
    double inner = chance;
    for (size_t d = body + 1; d < path.size(); ++d) inner *= tree_.loops[path[d]].extent;
    out.weight = turns * inner;
    out.is_write = access.is_write;
    out.is_packed = buffer.is_parameter && !access.is_write && lane_stride == 1;
    out.stride = lane_stride != 0 || path.size() <= 1 ? lane_stride : access.strides[body];
    const double extent = tree_.loops[path[body]].run;
    const Footprint loop = footprint_of(tree_, access, path, body, target_),
                    turn = footprint_of(tree_, access, path, body + 1, target_);
    out.bytes = inner * extent * static_cast<double>(buffer.element_bytes);
    out.distinct_bytes = loop.bytes;
    out.lines = turn.lines * extent;
    out.distinct_lines = loop.lines;
    nest.pages += loop.pages;
    // Pieces a multiple of a page apart meet in few sets of L1.
    const double set_bytes = caches_[0] / kL1Ways;
    double crowding = 0;
    if (turn.pieces > 1 && turn.piece_stride > 0) {
      const double apart = std::fmod(turn.piece_stride, set_bytes);
      const auto line = static_cast<double>(target_.line_bytes);
      double sets = set_bytes / line;
      if (const double step = std::min(apart, set_bytes - apart); step < line) sets = 1;
      else sets = std::min(sets, set_bytes / std::max(line, std::min(step, gcd(turn.piece_stride, set_bytes))));
      crowding = turn.pieces / sets / kL1Ways;
      nest.conflicts = std::max(nest.conflicts, crowding);
    }
    for (size_t d = path.size(); d-- > 1;) {
      const TreeLoop& at = tree_.loops[path[d]];
      if (access.strides[d] != 0 || at.run <= 1 || at.kind == ForKind::kVectorized) continue;
      out.reuse = Reuse::kLoop;
      out.reuse_distance = sets_[static_cast<size_t>(path[d])];
      out.reuse_count = at.run;
      break;
    }
    const auto [sibling, share] = earlier_access(number, access, path);
    if (sibling >= 0 && out.reuse == Reuse::kNone) {
      out.reuse = Reuse::kSerial;
      out.reuse_distance = sets_[static_cast<size_t>(sibling)];
      out.reuse_count = 2;
    }
    for (int level = 0; level < kCacheLevels; ++level) {
      const double cache = caches_[static_cast<size_t>(level)];
      double misses = turn.lines, distinct = turn.lines;
      for (size_t d = body; d > 0; --d) {
        const double run = tree_.loops[path[d]].run, again = misses * run;
        const Footprint here = footprint_of(tree_, access, path, d, target_);
        double stays = stays_in_cache(sets_[static_cast<size_t>(path[d])], cache);
        if (level == 0 && crowding > 1) stays /= crowding;
        const double shared = std::min(again, here.lines * std::max(1.0, misses / distinct));
        misses = stays * shared + (1 - stays) * again;
        distinct = std::max(1.0, here.lines);
        misses *= tree_.loops[path[d]].chance;
      }
      // The kernel runs again and again: what fits as a whole is there already.
      misses *= 1 - stays_in_cache(sets_[0], cache);
      if (sibling >= 0) misses *= 1 - share * stays_in_cache(sets_[static_cast<size_t>(sibling)], cache);
      misses *= chance;
      out.misses[static_cast<size_t>(level)] = misses;
      nest.misses[static_cast<size_t>(level)] += misses;
      if (access.is_write) nest.writes[static_cast<size_t>(level)] += misses;
      const auto& ahead = prefetched_[path[body]];
      if (std::find(ahead.begin(), ahead.end(), access.buffer) != ahead.end())
        nest.prefetched[static_cast<size_t>(level)] += misses;
    }
    nest.accesses.push_back(out);
  }

  static double gcd(double a, double b) {
    while (b >= 1) {
      const double r = std::fmod(a, b);
      a = b;
      b = r;
    }
    return std::max(1.0, a);
  }

  /// The innermost loop around this and an earlier access of the same bytes, and the share of the bytes; -1: none.
  std::pair<int, double> earlier_access(size_t number, const TreeAccess& access, const std::vector<int>& path) const {
    int best = -1;
    double best_share = 0;
    for (size_t s = 0; s <= number; ++s) {
      const TreeStore& other = tree_.stores[s];
      for (const TreeAccess& before : other.accesses) {
        if (&before == &access) break;
        if (before.buffer != access.buffer || before.is_prefetch) continue;
        const std::vector<int> its = tree_.path(other.loop);
        size_t common = 0;
        while (common + 1 < std::min(its.size(), path.size()) && its[common + 1] == path[common + 1]) ++common;
        if (best >= 0 && tree_.loops[best].depth > static_cast<int>(common)) continue;
        const Footprint a = footprint_of(tree_, before, its, common + 1, target_),
                        b = footprint_of(tree_, access, path, common + 1, target_);
        const double overlap = std::min(a.high, b.high) - std::max(a.low, b.low);
        const double share = std::clamp(overlap / std::max(1.0, b.high - b.low), 0.0, 1.0);
        if (share <= 0.25) continue;
        if (best == path[common] && share <= best_share) continue;
        best = path[common];
        best_share = share;
      }
    }
    return {best, best_share};
  }

  void finish(int loop, NestFacts& nest) {
    const TreeLoop& at = tree_.loops[loop];
    nest.turns = runs_[static_cast<size_t>(loop)];
    nest.extent = at.run;
    nest.entries = loop == 0 ? 1 : nest.turns / std::max(1.0, at.run);
    nest.outer_turns = std::max(1.0, nest.entries);
    for (int up = loop; up > 0; up = tree_.loops[up].parent) nest.depth += !is_written_out(tree_.loops[up]);
    nest.live += nest.accumulators;
    nest.turn_bytes = sets_[static_cast<size_t>(loop)];
    for (const AccessFacts& access : nest.accesses) nest.loop_bytes += access.distinct_bytes;
    std::stable_sort(nest.accesses.begin(), nest.accesses.end(),
                     [](const AccessFacts& a, const AccessFacts& b) { return a.weight > b.weight; });
    facts_.statements += nest.statements;
    facts_.nests.push_back(std::move(nest));
  }

  void read_threads() {
    if (tree_.threads <= 1) return;
    double shared = 0, all = 0, busy = 0;
    for (size_t l = 1; l < tree_.loops.size(); ++l) {
      const TreeLoop& loop = tree_.loops[l];
      if (loop.shared_out == 0) continue;
      facts_.shared_out = std::max(facts_.shared_out, loop.shared_out);
      facts_.starts += wholes_[static_cast<size_t>(loop.parent)] * loop.chance;
    }
    for (const auto& nest : facts_.nests) {
      double ops = 1;
      for (double count : nest.ops) ops += count;
      ops += nest.vector_loads + nest.scalar_loads + nest.stores;
      all += ops * nest.turns;
    }
    // By nest: how much of the work lies in loops that are shared out, and how full these are.
    for (const auto& [loop, turns] : nest_turns()) {
      const double whole = wholes_[static_cast<size_t>(loop)], run = runs_[static_cast<size_t>(loop)];
      shared += is_shared(loop) ? turns : 0;
      busy += is_shared(loop) ? turns * whole / std::max(1e-9, run) / tree_.threads : turns / tree_.threads;
    }
    if (all > 0) {
      facts_.serial_share = 1 - shared / all;
      facts_.idle = std::clamp(1 - busy / all, 0.0, 1.0);
    }
  }

  bool is_shared(int loop) const {
    for (int at = loop; at > 0; at = tree_.loops[at].parent)
      if (tree_.loops[at].shared_out > 0) return true;
    return false;
  }

  std::vector<std::pair<int, double>> nest_turns() const {
    std::vector<std::pair<int, double>> out;
    size_t k = 0;
    for (const auto& [loop, unused] : nests_) {
      const NestFacts& nest = facts_.nests[k++];
      double ops = 1;
      for (double count : nest.ops) ops += count;
      ops += nest.vector_loads + nest.scalar_loads + nest.stores;
      out.emplace_back(loop, ops * nest.turns);
    }
    return out;
  }

  void read_intensity() {
    // From the heaviest nest outwards.
    int heaviest = 0;
    double most = -1;
    size_t k = 0;
    for (const auto& [loop, unused] : nests_) {
      const NestFacts& nest = facts_.nests[k++];
      const double work = nest.turns * (nest.ops[0] * 2 + nest.ops[1] + nest.ops[2] + nest.ops[4] + 1);
      if (work > most) most = work, heaviest = loop;
    }
    std::vector<double> curve;
    const std::vector<int> path = tree_.path(heaviest);
    double flops = 0;
    k = 0;
    for (const auto& [loop, unused] : nests_) {
      const NestFacts& nest = facts_.nests[k++];
      if (loop == heaviest) flops = nest.lanes * (nest.ops[0] * 2 + nest.ops[1] + nest.ops[2] + nest.ops[4]);
    }
    for (size_t d = path.size(); d-- > 0;) {
      curve.push_back(flops / std::max(1.0, sets_[static_cast<size_t>(path[d])]));
      flops *= tree_.loops[path[d]].run;
    }
    for (size_t i = 0; i < facts_.intensity.size() && !curve.empty(); ++i) {
      const double at = static_cast<double>(i) * static_cast<double>(curve.size() - 1) /
                        static_cast<double>(facts_.intensity.size() - 1);
      const auto low = static_cast<size_t>(at);
      const size_t high = std::min(low + 1, curve.size() - 1);
      const double part = at - static_cast<double>(low);
      facts_.intensity[i] = curve[low] * (1 - part) + curve[high] * part;
    }
  }

  const LoopTree& tree_;
  const Target& target_;
  const std::vector<double> sets_;
  const std::array<double, kCacheLevels> caches_;
  KernelFacts facts_;
  std::vector<double> runs_, wholes_;  // by loop: turns of the busiest thread, of all threads
  std::map<int, NestFacts> nests_;     // by loop
  std::map<int, std::vector<int>> prefetched_;
};

}  // namespace

double stays_in_cache(double working_set, double cache_bytes) {
  // Not all at once: sets fill unevenly, and others use the cache too.
  constexpr double kAll = 0.7, kNothing = 1.4;
  return std::clamp((kNothing - working_set / std::max(1.0, cache_bytes)) / (kNothing - kAll), 0.0, 1.0);
}

KernelFacts kernel_facts(const LoopTree& tree, const Target& target) { return FactReader(tree, target).read(); }

}  // namespace tensmith
