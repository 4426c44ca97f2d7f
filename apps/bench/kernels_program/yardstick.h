/// What the machine can do at most: independent FMAs, measured in this process beside every kernel.
#pragma once

namespace tensmith::bench {

/// Units: float32 operations a second of one thread, from independent vector FMAs of `vector_bits`; best of several
/// windows of about a millisecond. x86-64 only; elsewhere 0.
double peak_flops(int vector_bits);
/// Units: cycles a second, from a chain of dependent additions.
double clock_hz();

}  // namespace tensmith::bench
