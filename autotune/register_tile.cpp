#include "autotune/register_tile.h"

#include <algorithm>
#include <cmath>

namespace tensmith {

namespace {

// An FMA takes four cycles on every x86 core and on the wide AArch64 ones; two loads issue a cycle, and a 512-bit load
// counts as one on cores with two 512-bit ports.
constexpr double kFmaLatency = 4;
constexpr double kLoadsPerCycle = 2;
// What starting and storing a tile costs beside its steps, spread over a reduction of some hundred steps.
constexpr double kTileOverhead = 0.15;
constexpr int kMaxElementTile = 14;

double tile_cycles(const TileProblem& p, const Target& target, int64_t rows, int64_t vectors) {
  const double fmas = static_cast<double>(rows * vectors) / target.fma_ports;
  const double loads =
      (rows * p.row_loads + vectors * p.column_loads + rows * vectors * p.element_loads) / kLoadsPerCycle;
  return std::max({fmas, loads, kFmaLatency}) + kTileOverhead;
}

}  // namespace

RegisterTile choose_register_tile(const TileProblem& p, const Target& target) {
  RegisterTile best;
  const int64_t all_vectors = (p.columns + p.lanes - 1) / p.lanes;
  for (int vectors = 1; vectors <= std::min<int64_t>(all_vectors, 8); ++vectors) {
    for (int rows = static_cast<int>(p.row_multiple); rows <= std::min<int64_t>(p.rows, target.vector_registers - 2);
         rows += static_cast<int>(p.row_multiple)) {
      // Element operands stream through one register; a vector operand of the step is held for all rows.
      const int held = p.column_loads > 0 ? vectors : 0;
      if (rows * vectors + held + 1 > target.vector_registers) break;
      // Operands of their own for each accumulator come from memory: larger tiles only spread the accesses (measured on
      // depthwise convolutions: 14 accumulators 0.39 of peak, 30 0.31).
      if (p.element_loads > 0 && rows * vectors > kMaxElementTile) break;
      // L1 has few ways: rows that fall into the same sets must fit them together.
      if (p.rows_conflict && rows > 8) break;
      const int64_t full_rows = p.rows / rows, left_rows = p.rows % rows;
      const int64_t full_columns = all_vectors / vectors, left_columns = all_vectors % vectors;
      double cycles = full_rows * full_columns * tile_cycles(p, target, rows, vectors);
      if (left_rows) cycles += full_columns * tile_cycles(p, target, left_rows, vectors);
      if (left_columns) cycles += full_rows * tile_cycles(p, target, rows, left_columns);
      if (left_rows && left_columns) cycles += tile_cycles(p, target, left_rows, left_columns);
      // Of equal tiles the one with more accumulators hides more; tiny differences are noise.
      const bool better = best.cycles == 0 || cycles < best.cycles * 0.995 ||
                          (cycles < best.cycles * 1.005 && rows * vectors > best.rows * best.vectors);
      if (better) best = {rows, vectors, best.cycles == 0 ? cycles : std::min(cycles, best.cycles), 0};
    }
  }
  const double ideal = static_cast<double>(p.rows) * p.columns / p.lanes / target.fma_ports;
  best.efficiency = best.cycles > 0 ? ideal / best.cycles : 0;
  return best;
}

}  // namespace tensmith
