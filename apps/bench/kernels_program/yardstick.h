/// What the machine can do at most: independent FMAs, measured in this process beside every kernel.
#pragma once

#include <cstdint>

#include "runtime/base/target.h"

namespace tensmith::bench {

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
/// x86-64 only; elsewhere 0.
Bandwidths measure_bandwidths(const Target& target);

}  // namespace tensmith::bench
