/// Pairs of short windows: what is timed and a yardstick in turn.
#pragma once

#include <functional>

namespace tensmith::bench {

/// Times of one kernel beside a yardstick's.
struct Timing {
  double ms = 0;     ///< of a call: the least of many windows
  double units = 0;  ///< what the yardstick does in the time of a call: the median over pairs of windows
};
/// Windows of about half a millisecond or one call, `windows` of each kind in turn. Each window of the kernel is
/// compared with the yardstick's just before and after it, so both meet the same clock (which falls by a tenth within
/// milliseconds of wide vectors) and the same load. `yardstick` runs for about the given seconds and gives its units a
/// second; null: without one.
using Yardstick = std::function<double(double seconds)>;
Timing time_beside(const std::function<void()>& call, int threads, const Yardstick& yardstick, int windows);

}  // namespace tensmith::bench
