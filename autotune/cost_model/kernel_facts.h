/// What is known of a kernel without running it, in plain physical units, nest by nest. The analytic model computes
/// cycles from it, the learned models get its logarithms.
#pragma once

#include <array>
#include <vector>

#include "autotune/cost_model/loop_tree.h"

namespace tensmith {

/// Caches whose misses are counted: L1, L2, L3.
inline constexpr int kCacheLevels = 3;

enum class Reuse : uint8_t {
  kNone,    ///< each element once
  kLoop,    ///< by later turns of a loop
  kSerial,  ///< of what an earlier statement touched
};

/// One access of a nest.
struct AccessFacts {
  double weight = 0;                         ///< accesses of a thread in a run of the kernel, by which they are ordered
  bool is_write = false, is_packed = false;  ///< packed: vectors read a constant with stride 1
  double bytes = 0, distinct_bytes = 0;      ///< by all turns of the nest's loop
  double lines = 0, distinct_lines = 0;
  double stride = 0;  ///< Units: elements, of the loop of lanes, else of the innermost one
  Reuse reuse = Reuse::kNone;
  double reuse_distance = 0;  ///< Units: bytes that are touched before it comes back
  double reuse_count = 1;
  std::array<double, kCacheLevels> misses{};  ///< Units: lines of a run
};

/// The statements whose innermost serial or parallel loop is the same. Counts are instructions for each turn.
struct NestFacts {
  double turns = 0;    ///< of the thread with most of them, in a run of the kernel
  double extent = 1;   ///< turns for each entry
  double entries = 0;  ///< times that the loop is entered
  int depth = 0;       ///< loops around it that are not written out
  double outer_turns = 1;

  std::array<double, kOpKinds> ops{};
  double scalar_ops = 0;  ///< of these, on one lane
  double vector_loads = 0, scalar_loads = 0, stores = 0, strided = 0, gathers = 0, masked = 0, prefetches = 0;
  double lanes = 1, vector_extent = 1;  ///< that its vectors fill, and of the loop of lanes
  double unroll = 1;                    ///< copies of the largest statement that loops written out make
  double statements = 0;                ///< after writing out
  double accumulators = 0;              ///< registers that live through the loop
  double live = 0;                      ///< registers at least
  double chain = 0;                     ///< Units: cycles between one turn and the next, by latencies
  double guards = 0, chance = 1;
  double rows = 1, vectors = 1;  ///< of the register tile

  double turn_bytes = 0, loop_bytes = 0;      ///< working sets of a turn and of the whole loop
  double pages = 0;                           ///< that the whole loop touches
  double conflicts = 0;                       ///< pieces for each way of L1 that they have to share; up to 1 is free
  std::array<double, kCacheLevels> misses{};  ///< Units: lines of a run
  std::array<double, kCacheLevels> prefetched{};  ///< of these, asked for ahead
  std::array<double, kCacheLevels> writes{};      ///< of these, written
  std::vector<AccessFacts> accesses;              ///< heaviest first
};

/// Of the target.
struct MachineFacts {
  double vector_bytes = 16, registers = 16, fma_ports = 1;
  std::array<double, kCacheLevels> cache_bytes{};
};

/// Units: bytes, counts.
struct KernelFacts {
  std::vector<NestFacts> nests;
  double flops = 0;         ///< of all threads
  double kernel_bytes = 0;  ///< distinct, of the thread with most turns
  double stack_bytes = 0, workspace_bytes = 0, register_bytes = 0;
  double threads = 1;
  double shared_out = 0;    ///< turns of the largest loop that is shared out; 0: none
  double idle = 0;          ///< share of the threads' time without work in the loops that are shared out
  double serial_share = 0;  ///< share of the operations outside of these
  double starts = 0;        ///< times that threads are called
  double statements = 0;    ///< after writing out
  /// Operations for each distinct byte of the working sets, from the innermost loop outwards, sampled evenly.
  std::array<double, 8> intensity{};
  MachineFacts machine;
};

/// Cost: some ten microseconds a statement.
KernelFacts kernel_facts(const LoopTree& tree, const Target& target);

/// Share of a working set that is still in a cache when it is met again; from 1 to 0 around the cache's size.
double stays_in_cache(double working_set, double cache_bytes);

}  // namespace tensmith
