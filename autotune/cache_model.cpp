#include "autotune/cache_model.h"

#include <algorithm>

namespace tensmith {

namespace {

// L3 gave 26 GB/s to a thread of Sapphire Rapids (9 cycles a line) and 100 GB/s on Zen 4; prefetching hides most of it
// (fitted to 240 products of 128 to 1,024 rows: 1.6 to 2.2 cycles a line).
constexpr double kCyclesPerOuterLine = 2;
// What is read again and again leaves a cache long before it is full: of a working set of this share of it nothing is
// lost, of the second share all of it (same fit; 1,024 rows of 768: 0.86 of peak in one block, 0.90 to 0.95 in eight).
constexpr double kSafeShare = 0.25, kLostShare = 0.85;
// Weights come from memory (16 GB/s to a thread, 15 cycles a line) unless the next block was asked for while the rows
// met the last one (1x1 convolution from 1024 to 256 channels of 14x14 pixels with cold weights: 0.80 of peak with rows
// outside, 0.93 with vectors outside).
constexpr double kCyclesPerColdLine = 16, kCyclesPerAwaitedLine = 4;
// Beyond L2 an output that comes in short pieces is written that much slower (1x1 convolution of 56x56 pixels from 64
// to 256 channels: 0.73 of peak in pieces, 0.83 whole rows at a time).
constexpr double kPieceCost = 0.5;
// Moving lines is what depthwise taps wait for. Cycles a line from L2 and back to it (173 and 62 GB/s at 3.8 GHz); what
// is computed meanwhile hides part of it. Depthwise 3x3 and 5x5 over 64 to 1,152 channels of 7x7 to 56x56 pixels in
// sweeps of 1, 2, 3, 4, 8 and all blocks: fitted to these, within 4 % of the fastest for most (5x5 over 672 channels of
// 14x14 in stride 2: 0.64 of peak where 3 or 4 blocks gave 0.73).
constexpr double kReadCycles = 1.4, kWriteCycles = 4.1, kNotHidden = 0.5;
// The first and the last rows take other branches, and the first window comes anew.
constexpr double kSweepCycles = 250;
// Each further block of rows costs tails and starts that nothing else counts.
constexpr double kBlockCycles = 2000;

/// Of what a working set of `used` times a cache wants again, the share that is gone by then.
double lost_share(double used) { return std::clamp((used - kSafeShare) / (kLostShare - kSafeShare), 0.0, 1.0); }

}  // namespace

TileOrder choose_tile_order(const TileTraffic& t, const Target& target) {
  const double line = static_cast<double>(target.line_bytes);
  const double l1 = static_cast<double>(target.l1_bytes) / 2, l2 = static_cast<double>(target.l2_bytes) * 0.75;
  const auto rows = static_cast<double>(t.row_tiles), vectors = static_cast<double>(t.vector_tiles);
  const double row_tile = t.row_bytes / rows, vector_tile = t.vector_bytes / vectors;
  const bool all_in_l2 = t.row_bytes + t.vector_bytes + t.element_bytes + t.output_bytes <= l2;
  const auto priced = [&](TileOrder order, double l2_bytes, double outer_bytes) {
    order.l2_lines = l2_bytes / line;
    order.outer_lines = all_in_l2 ? 0 : (outer_bytes + t.output_bytes) / line;
    const bool awaited = t.asks_ahead && order.vectors_outside && t.row_tiles >= 2 * order.row_blocks;
    order.cycles = order.l2_lines * kCyclesPerL2Line + order.outer_lines * kCyclesPerOuterLine +
                   t.cold_bytes / line * (awaited ? kCyclesPerAwaitedLine : kCyclesPerColdLine) +
                   static_cast<double>(order.row_blocks - 1) * kBlockCycles;
    return order;
  };
  // Rows outside.
  TileOrder best = priced({}, t.vector_bytes * rows + t.row_bytes * (row_tile <= l1 ? 1 : vectors),
                          t.row_bytes + t.vector_bytes * (t.vector_bytes + row_tile <= l2 ? 1 : rows));
  for (int64_t blocks = 1; blocks <= std::min<int64_t>(t.max_row_blocks, 64); ++blocks) {
    const auto n = static_cast<double>(blocks);
    TileOrder order;
    order.vectors_outside = true;
    order.row_blocks = blocks;
    const double used = (t.row_bytes / n + vector_tile) / static_cast<double>(target.l2_bytes);
    const double lost = lost_share(used);
    // Pieces of rows that come from beyond L2 come about as slowly as whole rows twice (depthwise 3x3 in stride 2 over
    // 96 channels of 112x112, channels-last: 0.48 ms, whole rows 0.23 ms).
    const double pieces = t.columns_adjacent && t.vector_tiles > 1 && t.element_bytes > l2 ? t.element_bytes : 0;
    order = priced(order, t.row_bytes * vectors + t.vector_bytes * (vector_tile <= l1 ? n : rows),
                   t.row_bytes * (1 + lost * (vectors - 1)) + t.vector_bytes * n + pieces +
                       (t.columns_adjacent && t.vector_tiles > 1 ? kPieceCost * t.output_bytes : 0));
    if (order.cycles < best.cycles) best = order;
  }
  return best;
}

int64_t choose_sweep_blocks(const SweepTraffic& t, const Target& target) {
  const double line = static_cast<double>(target.line_bytes);
  int64_t best = t.blocks;
  double least = 0;
  for (int64_t blocks = 1; blocks <= t.blocks; ++blocks) {
    const auto n = static_cast<double>(blocks);
    if (blocks < std::min<int64_t>(2, t.blocks) || (n * t.block_bytes < 2 * line && blocks < t.blocks)) continue;
    const auto sweeps = static_cast<double>((t.blocks + blocks - 1) / blocks);
    const double used = n * (t.window_bytes + t.row_bytes) / static_cast<double>(target.l1_bytes);
    const double lost = lost_share(used);
    const double again = t.window_bytes * static_cast<double>(t.rows * t.blocks) - t.element_bytes;
    const double moving =
        (t.element_bytes + lost * std::max(0.0, again)) / line * kReadCycles + t.output_bytes / line * kWriteCycles;
    const double cycles = std::max(moving, t.arithmetic_cycles) + kNotHidden * std::min(moving, t.arithmetic_cycles) +
                          sweeps * kSweepCycles;
    if (least > 0 && cycles >= least) continue;
    least = cycles;
    best = blocks;
  }
  return best;
}

}  // namespace tensmith
