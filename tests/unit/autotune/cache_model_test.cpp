#include "autotune/cache_model.h"

#include <gtest/gtest.h>

namespace tensmith {
namespace {

Target with_caches(int64_t l1, int64_t l2) {
  Target target;
  target.l1_bytes = l1;
  target.l2_bytes = l2;
  return target;
}

TileTraffic product(int64_t m, int64_t n, int64_t k, int64_t rows, int64_t columns) {
  TileTraffic traffic;
  traffic.row_bytes = static_cast<double>(m * k * 4);
  traffic.vector_bytes = static_cast<double>(n * k * 4);
  traffic.output_bytes = static_cast<double>(m * n * 4);
  traffic.row_tiles = (m + rows - 1) / rows;
  traffic.vector_tiles = (n + columns - 1) / columns;
  traffic.max_row_blocks = traffic.row_tiles;
  return traffic;
}

TEST(CacheModel, SmallOperandsStayInL2WhateverTheOrder) {
  const TileOrder order = choose_tile_order(product(128, 128, 128, 13, 32), with_caches(48 << 10, 2 << 20));
  EXPECT_EQ(order.outer_lines, 0);
  EXPECT_EQ(order.row_blocks, 1);
}

TEST(CacheModel, WeightsBeyondL2PassOnce) {
  // 2.4 MB of weights and 0.4 MB of rows: each block of weights meets all rows, so that weights come once.
  const TileTraffic traffic = product(128, 768, 768, 13, 32);
  const TileOrder order = choose_tile_order(traffic, with_caches(48 << 10, 2 << 20));
  EXPECT_TRUE(order.vectors_outside);
  EXPECT_EQ(order.row_blocks, 1);
  EXPECT_LE(order.outer_lines, (traffic.row_bytes + traffic.vector_bytes + 1.5 * traffic.output_bytes) / 64);
}

TEST(CacheModel, FewWeightsStayWhileRowsPass) {
  // A 1x1 convolution from 256 to 64 channels over 56x56 pixels.
  const TileOrder order = choose_tile_order(product(3136, 64, 256, 14, 32), with_caches(48 << 10, 2 << 20));
  EXPECT_FALSE(order.vectors_outside);
}

TEST(CacheModel, LongOutputsAreWrittenByWholeRows) {
  // From 64 to 256 channels: 64 KiB of weights pass from L2 for each tile, 3.2 MB of output are written once.
  TileTraffic traffic = product(3136, 256, 64, 14, 32);
  traffic.max_row_blocks = 1;
  EXPECT_FALSE(choose_tile_order(traffic, with_caches(48 << 10, 2 << 20)).vectors_outside);
  // In blocks of channels the pieces are whole planes.
  traffic.columns_adjacent = false;
  EXPECT_TRUE(choose_tile_order(traffic, with_caches(48 << 10, 2 << 20)).vectors_outside);
}

TEST(CacheModel, RowsThatDoNotFitAreWalkedInBlocks) {
  const TileTraffic traffic = product(1024, 1024, 512, 12, 32);
  for (const int64_t l2 : {512 << 10, 1 << 20, 2 << 20}) {
    const TileOrder order = choose_tile_order(traffic, with_caches(48 << 10, l2));
    EXPECT_TRUE(order.vectors_outside);
    EXPECT_GT(order.row_blocks, 1);
    // A block of rows and one of vectors fit L2 together.
    EXPECT_LE(traffic.row_bytes / static_cast<double>(order.row_blocks) +
                  traffic.vector_bytes / static_cast<double>(traffic.vector_tiles),
              static_cast<double>(l2) * 0.75);
  }
}

TEST(CacheModel, ColdWeightsGoOutsideWhereTheNextBlockCanBeAskedFor) {
  // A 1x1 convolution from 1,024 to 256 channels over rows of 14 pixels: 1 MB of weights, L2 holds everything else.
  TileTraffic traffic = product(196, 256, 1024, 8, 48);
  traffic.cold_bytes = traffic.vector_bytes;
  const Target target = with_caches(48 << 10, 2 << 20);
  EXPECT_FALSE(choose_tile_order(traffic, target).vectors_outside);
  traffic.asks_ahead = true;
  EXPECT_TRUE(choose_tile_order(traffic, target).vectors_outside);
  traffic.cold_bytes = 0;
  EXPECT_FALSE(choose_tile_order(traffic, target).vectors_outside);
}

TEST(CacheModel, RowsThatCannotBeBlockedAreNot) {
  TileTraffic traffic = product(1024, 1024, 1024, 12, 32);
  traffic.max_row_blocks = 1;
  EXPECT_EQ(choose_tile_order(traffic, with_caches(48 << 10, 1 << 20)).row_blocks, 1);
}

/// Depthwise taps over `size` x `size` pixels of `channels` channels, 16 a block.
SweepTraffic sweep(int64_t kernel, int64_t size, int64_t channels, double cycles_per_row_of_tiles) {
  SweepTraffic traffic;
  traffic.window_bytes = static_cast<double>(kernel * (size + kernel - 1) * 64);
  traffic.row_bytes = static_cast<double>(size * 64);
  traffic.element_bytes = traffic.output_bytes = static_cast<double>(size * size * channels * 4);
  traffic.rows = size;
  traffic.blocks = channels / 16;
  traffic.block_bytes = 64;
  traffic.arithmetic_cycles = cycles_per_row_of_tiles * static_cast<double>(size * traffic.blocks);
  return traffic;
}

TEST(CacheModel, RowsOfDepthwiseTapsStayInL1) {
  const Target target = with_caches(48 << 10, 2 << 20);
  // 28x28 pixels of 192 channels: three whole rows are 65 KB, so few blocks of columns go together, but never one.
  const SweepTraffic wide = sweep(3, 28, 192, 126);
  const int64_t blocks = choose_sweep_blocks(wide, target);
  EXPECT_GE(blocks, 2);
  EXPECT_LE(static_cast<double>(blocks) * (wide.window_bytes + wide.row_bytes), 0.5 * 48 * 1024);
  // A cache that holds them all: one sweep.
  EXPECT_EQ(choose_sweep_blocks(wide, with_caches(1 << 20, 4 << 20)), wide.blocks);
}

TEST(CacheModel, SweepsOverFewRowsTakeMoreColumns) {
  const Target target = with_caches(48 << 10, 2 << 20);
  EXPECT_GT(choose_sweep_blocks(sweep(3, 7, 960, 32), target), choose_sweep_blocks(sweep(3, 28, 960, 126), target));
}

TEST(CacheModel, WhatArithmeticHidesIsSweptOnce) {
  // Not even two blocks of five rows stay in L1, and 25 taps take longer than reading them five times.
  EXPECT_EQ(choose_sweep_blocks(sweep(5, 56, 64, 700), with_caches(48 << 10, 2 << 20)), 4);
}

TEST(CacheModel, OneBlockIsOneSweep) {
  EXPECT_EQ(choose_sweep_blocks(sweep(3, 56, 16, 250), with_caches(48 << 10, 2 << 20)), 1);
}

}  // namespace
}  // namespace tensmith
