#include "autotune/cost_model/analytic_cycles.h"

#include <algorithm>
#include <cmath>

namespace tensmith {

namespace {

// Fitted on 1,109 candidates of 22 tasks where no measured figure was at hand; each within the range that the machine
// allows.
constexpr double kLoadPorts = 2, kIssueWidth = 8;
/// Units: cycles to start and end a loop that is not written out: counters, pointers, a branch that goes another way.
constexpr double kLoopEntry = 22;
/// Units: cycles a line by the level below the one that missed, beside arithmetic that hides the rest.
constexpr double kLineCycles[kCacheLevels] = {1.1, 5, 12};
/// What is left of that for a line that was asked for ahead.
constexpr double kPrefetchedShare = 0.5;
/// A written line comes and goes.
constexpr double kWriteFactor = 1.2;
/// Units: cycles to call the other threads and to wait for the last one.
constexpr double kThreadStart = 2500;
constexpr double kKernelStart = 60;
constexpr double kDivideShare = 0.4;
/// Units: instructions for each register that a turn has too many: out and in again.
constexpr double kSpill = 2;
/// Units: cycles that each of them delays the additions that wait for it.
constexpr double kSpillDelay = 0.25;
/// Share of the instructions off the busiest port that delays it.
constexpr double kInTheWay = 0.1;
/// Of the cycles for lines from L2: what arithmetic never hides.
constexpr double kBesideArithmetic = 0.3;
/// Constants of functions are loaded anew, and their steps depend on each other.
constexpr double kSpecialFactor = 1.8;
constexpr double kChainFactor = 1.4;

}  // namespace

NestCycles nest_cycles(const NestFacts& n, const MachineFacts& m) {
  const auto op = [&](OpKind kind) { return n.ops[static_cast<size_t>(kind)]; };
  const double lanes = m.vector_bytes / 4;
  const double spills = kSpill * std::max(0.0, n.live - m.registers);
  const double ports = m.fma_ports;
  // Divisions take a cycle a lane on a unit of their own, beside the ports; a reduction over lanes is a chain of
  // shuffles and operations.
  const double simple = op(OpKind::kFma) + op(OpKind::kAdd) + op(OpKind::kMul) + kSpecialFactor * op(OpKind::kSpecial) +
                        op(OpKind::kInteger) + op(OpKind::kSelect) + op(OpKind::kConvert);
  const double divide =
      op(OpKind::kDivide) * (n.scalar_ops >= op(OpKind::kDivide) ? 4 : std::max(4.0, lanes)) * kDivideShare;
  const double reduce = op(OpKind::kReduceLanes) * 2 * std::log2(std::max(2.0, n.vector_extent));
  const double arithmetic = (simple + reduce) / ports + divide;
  const double memory_loads = n.vector_loads + n.scalar_loads + n.prefetches + n.strided + n.gathers + spills / 2;
  const double loads = memory_loads / kLoadPorts;
  const double stores = n.stores + n.strided * 0.5 + spills / 2;
  const double issue =
      (simple + reduce + divide + memory_loads + stores + 2 * n.strided + n.gathers + n.masked + 2 + 1.2 * n.guards) /
      kIssueWidth;
  const double busiest = std::max({arithmetic, loads, stores, issue, n.chain * kChainFactor});
  // What is not the bottleneck still gets in the way now and then.
  const double all = arithmetic + loads + stores + issue;
  NestCycles cycles;
  cycles.arithmetic =
      n.turns * (busiest + kInTheWay * (all - std::min(all, busiest)) + n.masked * 0.1 + spills * kSpillDelay);
  cycles.loops = n.entries * (n.depth > 0 ? kLoopEntry : 0);
  double from_l2 = 0, from_outside = 0;
  for (size_t level = 0; level < kCacheLevels; ++level) {
    const double lines =
        n.misses[level] + (kWriteFactor - 1) * n.writes[level] - (1 - kPrefetchedShare) * n.prefetched[level];
    (level == 0 ? from_l2 : from_outside) += std::max(0.0, lines) * kLineCycles[level];
  }
  // Arithmetic and lines on their way overlap: the longer of both counts, the shorter one a little.
  const double at_work = cycles.arithmetic + cycles.loops + kBesideArithmetic * from_l2;
  const double on_the_way = from_outside + (1 - kBesideArithmetic) * from_l2;
  cycles.memory = std::hypot(at_work, on_the_way) - cycles.arithmetic - cycles.loops;
  return cycles;
}

double kernel_cycles(const KernelFacts& facts) {
  double cycles = kKernelStart;
  for (const NestFacts& nest : facts.nests) cycles += nest_cycles(nest, facts.machine).total();
  return cycles + facts.starts * kThreadStart;
}

}  // namespace tensmith
