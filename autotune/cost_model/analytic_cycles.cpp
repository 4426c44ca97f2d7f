#include "autotune/cost_model/analytic_cycles.h"

#include <algorithm>
#include <cmath>

namespace tensmith {

namespace {

constexpr double kLoadPorts = 2, kIssueWidth = 5;
/// Units: cycles to start and end a loop that is not written out: counters, pointers, a branch that goes another way.
constexpr double kLoopEntry = 9;
/// Units: cycles a line by the level below the one that missed, beside arithmetic that hides the rest.
constexpr double kLineCycles[kCacheLevels] = {0.9, 4, 12};
/// What is left of that for a line that was asked for ahead.
constexpr double kPrefetchedShare = 0.6;
/// A written line comes and goes.
constexpr double kWriteFactor = 1.6;
/// Units: cycles to call the other threads and to wait for the last one.
constexpr double kThreadStart = 2500;
constexpr double kKernelStart = 60;
/// Units: instructions for each register that a turn has too many: out and in again.
constexpr double kSpill = 2;

}  // namespace

NestCycles nest_cycles(const NestFacts& n, const MachineFacts& m) {
  const auto op = [&](OpKind kind) { return n.ops[static_cast<size_t>(kind)]; };
  const double lanes = m.vector_bytes / 4;
  const double spills = kSpill * std::max(0.0, n.live - m.registers);
  const double ports = m.fma_ports;
  // Divisions take a cycle a lane and more; a reduction over lanes is a chain of shuffles and operations.
  const double simple = op(OpKind::kFma) + op(OpKind::kAdd) + op(OpKind::kMul) + op(OpKind::kSpecial) +
                        op(OpKind::kInteger) + op(OpKind::kSelect) + op(OpKind::kConvert);
  const double divide = op(OpKind::kDivide) * (n.scalar_ops >= op(OpKind::kDivide) ? 4 : std::max(4.0, lanes));
  const double reduce = op(OpKind::kReduceLanes) * 2 * std::log2(std::max(2.0, n.vector_extent));
  const double arithmetic = (simple + reduce) / ports + divide;
  const double memory_loads = n.vector_loads + n.scalar_loads + n.prefetches + n.strided + n.gathers + spills / 2;
  const double loads = memory_loads / kLoadPorts;
  const double stores = n.stores + n.strided * 0.5 + spills / 2;
  const double issue =
      (simple + reduce + divide + memory_loads + stores + 2 * n.strided + n.gathers + n.masked + 2 + 2 * n.guards) /
      kIssueWidth;
  const double busiest = std::max({arithmetic, loads, stores, issue, n.chain});
  // What is not the bottleneck still gets in the way now and then.
  const double all = arithmetic + loads + stores + issue;
  NestCycles cycles;
  cycles.arithmetic = n.turns * (busiest + 0.08 * (all - std::min(all, busiest)) + n.masked * 0.5);
  cycles.loops = n.entries * (n.depth > 0 ? kLoopEntry : 0);
  for (size_t level = 0; level < kCacheLevels; ++level) {
    const double lines =
        n.misses[level] + (kWriteFactor - 1) * n.writes[level] - (1 - kPrefetchedShare) * n.prefetched[level];
    cycles.memory += std::max(0.0, lines) * kLineCycles[level];
  }
  return cycles;
}

double kernel_cycles(const KernelFacts& facts) {
  double cycles = kKernelStart;
  for (const NestFacts& nest : facts.nests) cycles += nest_cycles(nest, facts.machine).total();
  return cycles + facts.starts * kThreadStart;
}

}  // namespace tensmith
