/// The kernels that are timed: products, convolutions, depthwise convolutions and chains over vectors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/layout.h"
#include "tensor/workload.h"

namespace tensmith::bench {

enum class Measure : uint8_t { kPeak, kCycles };

/// A kernel to be timed.
struct Item {
  std::string group, name;
  Workload workload;
  std::vector<Layout> inputs, outputs;  ///< default-constructed: row-major
  double flops = 0;                     ///< of a call; kPeak
  double elements = 0;                  ///< kCycles
  double cycles_per_16 = 0;             ///< the figure of notes/cpu.md section 5 to compare with; kCycles
  Measure measure = Measure::kPeak;
};

/// All of them, in the order of the table. Blocked layouts have blocks of `lanes` channels.
std::vector<Item> all_items(int lanes);

}  // namespace tensmith::bench
