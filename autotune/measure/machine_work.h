/// What the machine can do at most, by work that is always the same: independent FMAs, dependent additions, sweeps
/// through memory. Measured in this process beside kernels; the one yardstick of the tuner and of the benchmarks.
#pragma once

#include <cstdint>

#include "runtime/base/target.h"
#include "runtime/thread_pool.h"

namespace tensmith {

/// Runs that many turns of independent vector FMAs with real factors.
void run_fma_turns(int vector_bits, int64_t turns);
/// Units: float32 operations of a turn.
int64_t fma_turn_flops(int vector_bits);

/// Units: float32 operations a second of one thread, from independent vector FMAs of `vector_bits`; best of several
/// windows of about a millisecond. x86-64 only; elsewhere 0.
double peak_flops(int vector_bits);
/// The same from one window of about `seconds`.
double peak_flops_once(int vector_bits, double seconds);
/// Units: cycles a second, from a chain of dependent additions; best of several windows.
double clock_hz();
/// The same from one window of about `seconds`.
double clock_hz_once(double seconds);

/// Units: bytes a second of one thread with vectors of the target's width, best of several windows.
struct LevelBandwidth {
  double read = 0, write = 0;
};
struct Bandwidths {
  LevelBandwidth l1, l2, l3;  ///< from half of L1, half of L2 and four times L2
};
/// That of the smallest level that holds so many bytes.
const LevelBandwidth& level_that_holds(const Bandwidths& bandwidths, const Target& target, int64_t bytes);
/// x86-64 only; elsewhere 0.
Bandwidths measure_bandwidths(const Target& target);

/// Units: bytes a second that all threads of the pool together read, each from `bytes` of its own; best of several
/// windows. x86-64 only; elsewhere 0.
double read_bandwidth(ThreadPool& pool, int vector_bits, int64_t bytes);

}  // namespace tensmith
