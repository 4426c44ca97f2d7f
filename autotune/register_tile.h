/// The choice of register tiles from the target's figures.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/target.h"

namespace tensmith {

/// What a tile of `rows` times `vectors` accumulators has to work on.
struct TileProblem {
  int64_t rows = 1;     ///< extent of the row loop
  int64_t columns = 1;  ///< extent of the vectorised loop, in elements
  int lanes = 1;
  double row_loads = 1;      ///< loads per row and step of the reduction (a broadcast operand)
  double column_loads = 1;   ///< loads per vector and step (a vector operand)
  double column_ops = 0;     ///< instructions beside FMAs per vector and step (widening what is stored in fewer bytes)
  double column_share = 1;   ///< bytes of the vector operands in memory, by those of as many vectors
  double element_loads = 0;  ///< loads per row and vector and step (an operand that both index, shared by taps)
  int64_t row_multiple = 1;  ///< tiles have a multiple of so many rows (whole rows of an image)
  int64_t line_rows = 0;     ///< each so many rows read vectors of their own (lines of pixels); 0: all share them
  bool rows_conflict = false;  ///< rows lie a multiple of 4 KiB apart
  int64_t steps = 256;         ///< of the reduction
  bool written_out = false;    ///< the innermost loop of the reduction is unrolled, for conditions on rows depend on it
  int64_t shared_rows = 0;     ///< element_loads: values beyond its own row that a step's neighbours share (taps - 1)
};

struct RegisterTile {
  int rows = 1, vectors = 1;
  double cycles = 0;      ///< Units: cycles per step of the reduction over the whole rows x columns domain
  double efficiency = 0;  ///< of the FMA peak
};

/// All tiles whose accumulators, vectors of one step and one broadcast fit the registers, by vectors, then rows.
std::vector<RegisterTile> register_tiles(const TileProblem& problem, const Target& target);

/// The tile with the fewest cycles: FMA issue, load ports, latency of the accumulation, start and end of a tile,
/// vectors that come from L2 and tails are counted; accumulators, the vectors of one step and one broadcast must fit
/// the registers. Source: notes/cpu.md sections 2.2 and 12.
/// Whether the steps of the reduction can be written out behind each other: with many of them, or more accumulators
/// than half of the registers, the compiler's scheduler moves loads up until some are spilled.
bool has_room_for_steps(const TileProblem& problem, const Target& target, int64_t rows, int64_t vectors);

RegisterTile choose_register_tile(const TileProblem& problem, const Target& target);

}  // namespace tensmith
