/// What the loops around a register tile move between the cache levels, and the order of these loops that moves least.
#pragma once

#include <cstdint>

#include "runtime/base/target.h"

namespace tensmith {

/// The operands of all tiles. Units: bytes.
struct TileTraffic {
  double row_bytes = 0;     ///< of what rows read, all of it
  double vector_bytes = 0;  ///< of what vectors read, all of it
  double cold_bytes = 0;    ///< of what vectors read, so much is constant: since its last use a whole model went by
  bool asks_ahead = false;  ///< while all rows meet a block of vectors, the next block can be asked for
  double output_bytes = 0;
  double element_bytes = 0;                 ///< of what rows and vectors index together (depthwise), all of it
  int64_t row_tiles = 1, vector_tiles = 1;  ///< how often the domain is cut along rows and along vectors
  int64_t max_row_blocks = 1;               ///< 1: rows cannot be walked in blocks
  bool columns_adjacent = true;             ///< a block of vectors writes a short piece of each row of the output
};

struct TileOrder {
  bool vectors_outside = false;  ///< each block of vectors meets all rows (of a row block) before the next one
  int64_t row_blocks = 1;        ///< vectors_outside: row tiles are walked in so many blocks, one after the other
  double l2_lines = 0;           ///< cache lines that come from L2
  double outer_lines = 0;        ///< and from beyond it
  double cycles = 0;             ///< Units: cycles that this costs beside the arithmetic
};

/// Units: cycles that a line from L2 costs beside arithmetic that hides the rest. Measured on Sapphire Rapids with the
/// vectors of a 14x32 and an 8x48 tile from L1 and from L2.
constexpr double kCyclesPerL2Line = 0.5;

/// The cheapest order. Rows outside: the row operand of a tile stays in L1 when it fits while all vectors pass. Vectors
/// outside: so does a block of vectors. Beyond L2 goes what does not stay there until its next use; a quarter of L2 is
/// left to the output and to others.
TileOrder choose_tile_order(const TileTraffic& traffic, const Target& target);

/// Rows that keep what they read for the next ones (depthwise taps): what a sweep over all of them moves for one block
/// of adjacent columns. Units: bytes.
struct SweepTraffic {
  double window_bytes = 0;   ///< what one row of outputs reads, for one block of columns
  double row_bytes = 0;      ///< what it writes
  double element_bytes = 0;  ///< of what is read, all of it, for all blocks
  double output_bytes = 0;
  int64_t rows = 1;              ///< rows of outputs
  int64_t blocks = 1;            ///< blocks of columns
  double block_bytes = 0;        ///< of one element of each column in a block: a piece of a row
  double arithmetic_cycles = 0;  ///< of everything
};

/// How many blocks of columns one sweep takes so that it costs least: few, and what a row reads stays in L1 for the
/// next one; many, and sweeps are started less often. At least two, side by side in the innermost loop: steps from row
/// to row are too long for a core to foresee what a load asks for next (5x5 over 240 channels of 14x14 pixels in blocks
/// of two lines: 0.60 of peak in sweeps of one, 0.81 of two).
int64_t choose_sweep_blocks(const SweepTraffic& traffic, const Target& target);

}  // namespace tensmith
