#include "autotune/register_tile.h"

#include <algorithm>
#include <cmath>

#include "autotune/cache_model.h"

namespace tensmith {

namespace {

// An FMA takes four cycles on every x86 core and on the wide AArch64 ones. Two loads issue a cycle, and a 512-bit load
// counts as one on cores with two 512-bit ports; beside FMAs that take their operand from memory 1.75 were sustained
// (24x16 tile in L1: 25 loads in 14.2 cycles).
constexpr double kFmaLatency = 4;
constexpr double kLoadsPerCycle = 1.75;
// What a step costs beside its FMAs, measured with everything in L1: 14.4 cycles for the 14 of a 14x32 tile, 12.35 for
// the 12 of an 8x48 one.
constexpr double kStepOverhead = 0.35;
// A mispredicted branch and filling the pipeline again, a store for each accumulator.
constexpr double kTileStart = 20;

// Reductions so short are unrolled whole: no loop ends, and the next tile starts while the last one drains.
constexpr int64_t kUnrolledSteps = 25;

/// An operand that rows and vectors both index is read once and kept for the taps of its neighbours, which takes as
/// many registers again; so do the vector operands of all steps, which the loops outside leave alone, unless they are
/// too many for that.
bool element_tile_fits(const TileProblem& p, const Target& target, int64_t rows, int64_t vectors) {
  int64_t kept = p.steps <= kUnrolledSteps ? static_cast<int64_t>(p.column_loads) * p.steps : 1;
  if (kept >= target.vector_registers / 2) kept = 1;
  return (2 * rows + p.shared_rows + kept) * vectors + 1 <= target.vector_registers;
}

/// Lines of pixels among the rows, see TileProblem::line_rows.
int64_t lines_of(const TileProblem& p, int64_t rows) {
  return p.line_rows > 0 ? std::max<int64_t>(1, rows / p.line_rows) : 1;
}

double tile_cycles(const TileProblem& p, const Target& target, int64_t rows, int64_t vectors) {
  // Widening takes the ports of FMAs.
  const double fmas = static_cast<double>(vectors) * (static_cast<double>(rows) + p.column_ops) / target.fma_ports;
  const int64_t lines = lines_of(p, rows);
  const double loads =
      (rows / lines * p.row_loads + vectors * lines * p.column_loads + rows * vectors * p.element_loads) /
      kLoadsPerCycle;
  // A block of vectors that is too large for L1 comes from L2 again for each row tile.
  const double vector_bytes = static_cast<double>(target.vector_bits) / 8 * p.column_share;
  const bool in_l1 = p.column_loads == 0 || (rows < p.rows && static_cast<double>(vectors * p.steps) * vector_bytes <=
                                                                  static_cast<double>(target.l1_bytes) / 2);
  const double from_l2 = in_l1 ? 0 : static_cast<double>(vectors) * p.column_loads * vector_bytes / target.line_bytes;
  const bool roomy = has_room_for_steps(p, target, rows, vectors);
  const bool unrolled = p.steps <= kUnrolledSteps && roomy;
  const double start =
      (static_cast<double>(rows * vectors) + (unrolled ? 0 : kTileStart)) / static_cast<double>(p.steps);
  // A step whose accumulators are spilled takes twice as long (first layer of MobileNet, 14x32 against 8x32).
  const double spills = p.written_out && !roomy ? fmas : 0;
  return std::max({fmas, loads, unrolled ? 0 : kFmaLatency}) + spills + kStepOverhead + start +
         from_l2 * kCyclesPerL2Line;
}

}  // namespace

bool has_room_for_steps(const TileProblem& p, const Target& target, int64_t rows, int64_t vectors) {
  constexpr int64_t kFewSteps = 9;
  return p.element_loads > 0 ||
         (2 * rows * vectors <= target.vector_registers && (p.written_out || p.steps <= kFewSteps));
}

std::vector<RegisterTile> register_tiles(const TileProblem& p, const Target& target) {
  std::vector<RegisterTile> tiles;
  const double ideal = static_cast<double>(p.rows) * p.columns / p.lanes / target.fma_ports;
  const int64_t all_vectors = (p.columns + p.lanes - 1) / p.lanes;
  for (int vectors = 1; vectors <= std::min<int64_t>(all_vectors, 8); ++vectors) {
    for (int rows = static_cast<int>(p.row_multiple); rows <= std::min<int64_t>(p.rows, target.vector_registers - 2);
         rows += static_cast<int>(p.row_multiple)) {
      // Element operands stream through one register; a vector operand of the step is held for all rows.
      // Lines share the broadcast operands, which then stay in registers too.
      const int64_t shared = lines_of(p, rows) > 1 ? p.line_rows : 0;
      const int64_t held = (p.column_loads > 0 ? vectors : 0) + shared;
      if (rows * vectors + held + 1 > target.vector_registers) break;
      if (p.element_loads > 0 && !element_tile_fits(p, target, rows, vectors)) break;
      // Rows that fall into the same sets of L1 must fit its ways together, beside the vectors that pass (of 12 ways
      // twelve rows took 230 us where eight took 224; with 8 ways fourteen rows reached 0.78 of peak, eight 0.99).
      if (p.rows_conflict && rows > 8) break;
      const int64_t full_rows = p.rows / rows, left_rows = p.rows % rows;
      const int64_t full_columns = all_vectors / vectors, left_columns = all_vectors % vectors;
      double cycles = full_rows * full_columns * tile_cycles(p, target, rows, vectors);
      if (left_rows) cycles += full_columns * tile_cycles(p, target, left_rows, vectors);
      if (left_columns) cycles += full_rows * tile_cycles(p, target, rows, left_columns);
      if (left_rows && left_columns) cycles += tile_cycles(p, target, left_rows, left_columns);
      tiles.push_back({rows, vectors, cycles, ideal / cycles});
    }
  }
  return tiles;
}

namespace {

/// As few rows as make no more tiles, where that costs nothing: a small last tile waits for its accumulators, and is a
/// second body where an even one is none (16 rows of 384 columns over 768 steps: 9 and 7 rows 0.95 of peak, twice 8
/// rows 0.98; 20 rows 0.94 and 0.965).
void even_out(RegisterTile& best, const TileProblem& p, const Target& target) {
  const int64_t count = (p.rows + best.rows - 1) / best.rows;
  const int64_t even = ((p.rows + count - 1) / count + p.row_multiple - 1) / p.row_multiple * p.row_multiple;
  for (const RegisterTile& tile : register_tiles(p, target))
    if (tile.vectors == best.vectors && tile.rows == even && tile.cycles <= best.cycles * 1.005) best.rows = tile.rows;
}

}  // namespace

RegisterTile choose_register_tile(const TileProblem& p, const Target& target) {
  RegisterTile best;
  for (const RegisterTile& tile : register_tiles(p, target)) {
    // Of equal tiles the one with more accumulators hides more; tiny differences are noise.
    const bool better = best.cycles == 0 || tile.cycles < best.cycles * 0.995 ||
                        (tile.cycles < best.cycles * 1.005 && tile.rows * tile.vectors > best.rows * best.vectors);
    if (better)
      best = {tile.rows, tile.vectors, best.cycles == 0 ? tile.cycles : std::min(tile.cycles, best.cycles), 0};
  }
  if (best.cycles > 0) even_out(best, p, target);
  const double ideal = static_cast<double>(p.rows) * p.columns / p.lanes / target.fma_ports;
  best.efficiency = best.cycles > 0 ? ideal / best.cycles : 0;
  return best;
}

}  // namespace tensmith
