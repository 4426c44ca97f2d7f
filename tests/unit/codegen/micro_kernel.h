/// The register-tile product written directly in loop IR, as the lowering of a scheduled matmul leaves it.
#pragma once

#include <string>

#include "tensor/stmt.h"

namespace tensmith {

/// C[rows x lanes*vectors] += A * B with A packed [k][rows], B packed [k][columns], C row-major.
struct MicroKernel {
  int rows, vectors, lanes;
  int64_t depth;

  int columns() const { return vectors * lanes; }
  std::string name() const { return "tile_" + std::to_string(rows) + "x" + std::to_string(columns()); }
};

inline LoopFunction make_micro_kernel(const MicroKernel& m) {
  const int columns = m.columns();
  Buffer a = make_buffer("a", kFloat32, {Expr(m.depth * m.rows)});
  Buffer b = make_buffer("b", kFloat32, {Expr(m.depth * columns)});
  Buffer c = make_buffer("c", kFloat32, {Expr(m.rows * columns)});
  Buffer acc = make_buffer("acc", kFloat32, {Expr(m.rows * columns)}, Scope::kRegister);
  Var k("k");
  auto lanes_at = [&](Expr base) { return Ramp::make(std::move(base), Expr(1), m.lanes); };
  std::vector<Stmt> start, step, finish;
  for (int i = 0; i < m.rows; ++i) {
    Expr row = Broadcast::make(load(a, {k * m.rows + i}), m.lanes);
    for (int j = 0; j < m.vectors; ++j) {
      const int at = i * columns + j * m.lanes;
      start.push_back(Store::make(acc, {lanes_at(at)}, load(c, {lanes_at(at)})));
      Expr column = load(b, {lanes_at(k * columns + j * m.lanes)});
      step.push_back(Store::make(acc, {lanes_at(at)}, load(acc, {lanes_at(at)}) + row * column));
      finish.push_back(Store::make(c, {lanes_at(at)}, load(acc, {lanes_at(at)})));
    }
  }
  Stmt body =
      Block::make({Block::make(start), For::make(k, Expr(0), Expr(m.depth), ForKind::kSerial, Block::make(step)),
                   Block::make(finish)});
  return LoopFunction{m.name(), {a, b, c}, {}, {c}, Allocate::make(acc, body), {}};
}

/// The same for bytes: C[rows x lanes*vectors] (i32) += A (u8 or i8) * B (i8), four products a step; A packed
/// [k/4][rows][4], B packed [k/4][columns][4]. The four bytes of a row are broadcast as one word.
inline LoopFunction make_dot_kernel(const MicroKernel& m, DType left) {
  const int columns = m.columns();
  Buffer a = make_buffer("a", left, {Expr(m.depth * m.rows)});
  Buffer b = make_buffer("b", kInt8, {Expr(m.depth * columns)});
  Buffer c = make_buffer("c", kInt32, {Expr(m.rows * columns)});
  Buffer acc = make_buffer("acc", kInt32, {Expr(m.rows * columns)}, Scope::kRegister);
  Var k("k");
  auto lanes_at = [&](Expr base, int lanes) { return Ramp::make(std::move(base), Expr(1), lanes); };
  std::vector<Stmt> start, step, finish;
  for (int i = 0; i < m.rows; ++i) {
    Expr word = Call::make(kInt32, Intrinsic::kBitcast, {Load::make(a, {lanes_at(k * (4 * m.rows) + 4 * i, 4)})});
    Expr row = Call::make(left.with_lanes(4 * m.lanes), Intrinsic::kBitcast, {Broadcast::make(word, m.lanes)});
    for (int j = 0; j < m.vectors; ++j) {
      const int at = i * columns + j * m.lanes;
      start.push_back(Store::make(acc, {lanes_at(at, m.lanes)}, Load::make(c, {lanes_at(at, m.lanes)})));
      Expr column = Load::make(b, {lanes_at(k * (4 * columns) + 4 * j * m.lanes, 4 * m.lanes)});
      Expr old = Load::make(acc, {lanes_at(at, m.lanes)});
      step.push_back(Store::make(acc, {lanes_at(at, m.lanes)},
                                 Call::make(old.dtype(), Intrinsic::kDotAccumulate, {old, row, column})));
      finish.push_back(Store::make(c, {lanes_at(at, m.lanes)}, Load::make(acc, {lanes_at(at, m.lanes)})));
    }
  }
  Stmt body =
      Block::make({Block::make(start), For::make(k, Expr(0), Expr(m.depth / 4), ForKind::kSerial, Block::make(step)),
                   Block::make(finish)});
  return LoopFunction{m.name(), {a, b, c}, {}, {c}, Allocate::make(acc, body), {}};
}

/// A row of a direct convolution in blocked channels: out[pixels][columns] += in[y + ky][pixel + kx][channels] *
/// w[ky][kx][channels][columns] with all strides constant, `lanes` channels a block, accumulators in registers.
inline LoopFunction make_conv_kernel(int pixels, int vectors, int lanes, int kernel, int width, int blocks) {
  const int columns = vectors * lanes;
  Buffer in = make_buffer("in", kFloat32, {Expr(int64_t{blocks} * kernel * width * lanes)});
  Buffer w = make_buffer("w", kFloat32, {Expr(int64_t{blocks} * kernel * kernel * lanes * columns)});
  Buffer out = make_buffer("out", kFloat32, {Expr(pixels * columns)});
  Buffer acc = make_buffer("acc", kFloat32, {Expr(pixels * columns)}, Scope::kRegister);
  Var block("block"), ky("ky"), kx("kx"), c("c");
  auto lanes_at = [&](Expr base) { return Ramp::make(std::move(base), Expr(1), lanes); };
  std::vector<Stmt> start, step, finish;
  for (int i = 0; i < pixels; ++i) {
    Expr row = Broadcast::make(load(in, {((block * kernel + ky) * width + kx + i) * lanes + c}), lanes);
    for (int j = 0; j < vectors; ++j) {
      const int at = i * columns + j * lanes;
      start.push_back(Store::make(acc, {lanes_at(at)}, Load::make(out, {lanes_at(at)})));
      Expr weights =
          Load::make(w, {lanes_at((((block * kernel + ky) * kernel + kx) * lanes + c) * columns + j * lanes)});
      step.push_back(Store::make(acc, {lanes_at(at)}, Load::make(acc, {lanes_at(at)}) + row * weights));
      finish.push_back(Store::make(out, {lanes_at(at)},
                                   max(Load::make(acc, {lanes_at(at)}), make_zero(kFloat32.with_lanes(lanes)))));
    }
  }
  auto loop = [](const Var& v, int extent, Stmt body) {
    return For::make(v, Expr(0), Expr(extent), ForKind::kSerial, std::move(body));
  };
  Stmt nest = loop(block, blocks, loop(ky, kernel, loop(kx, kernel, loop(c, lanes, Block::make(step)))));
  return LoopFunction{"conv",
                      {in, w, out},
                      {},
                      {out},
                      Allocate::make(acc, Block::make({Block::make(start), nest, Block::make(finish)})),
                      {}};
}

}  // namespace tensmith
