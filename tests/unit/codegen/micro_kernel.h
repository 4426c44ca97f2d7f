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
  Stmt body = Block::make({Block::make(start), For::make(k, Expr(0), Expr(m.depth), ForKind::kSerial, Block::make(step)), Block::make(finish)});
  return LoopFunction{m.name(), {a, b, c}, {}, {c}, Allocate::make(acc, body), {}};
}

}  // namespace tensmith
