// The verifier: what it accepts (tiles, guards, clamps, masks) and what it refuses, with the id.

#include <gtest/gtest.h>

#include "tensor/parse.h"
#include "tensor/verify.h"

namespace tensmith {
namespace {

Stmt loop(const Var& v, const Expr& extent, Stmt body, ForKind kind = ForKind::kSerial) {
  return For::make(v, 0, extent, kind, std::move(body));
}
Stmt parallel(const Var& v, const Expr& extent, Stmt body) {
  return loop(v, extent, std::move(body), ForKind::kParallel);
}
Expr number(double value) { return FloatImm::make(kFloat32, value); }

class VerifyTest : public ::testing::Test {
 protected:
  LoopFunction function(Stmt body) const { return {"f", {A, C, idx}, {M, N}, {C}, std::move(body), {}}; }
  std::string id(Stmt body, const VerifyOptions& options = {}) const {
    const Result<void> result = verify(function(std::move(body)), options);
    return result.ok() ? "ok" : result.failure().id;
  }
  std::string message(Stmt body) const {
    const Result<void> result = verify(function(std::move(body)));
    return result.ok() ? "ok" : result.failure().message;
  }
  Stmt store(std::vector<Expr> at, Expr value = number(1)) const {
    return Store::make(C, std::move(at), std::move(value));
  }

  Var M{"M"}, N{"N"}, i{"i"}, j{"j"}, io{"io"}, ii{"ii"}, jo{"jo"}, ji{"ji"}, x{"x"};
  Buffer A = make_buffer("A", kFloat32, {M, N});
  Buffer C = make_buffer("C", kFloat32, {M, N});
  Buffer idx = make_buffer("idx", kInt64, {M});
};

TEST_F(VerifyTest, AcceptsPlainLoops) {
  EXPECT_EQ(id(loop(i, M, loop(j, N, store({i, j}, load(A, {i, j}))))), "ok");
  EXPECT_EQ(id({}), "ok");
  EXPECT_EQ(id(loop(i, M * N, Store::make(C, {i}, number(0)))), "ok");                  // flat
  EXPECT_EQ(id(loop(i, M, loop(j, N, Store::make(C, {i * N + j}, number(0))))), "ok");  // flat
}

TEST_F(VerifyTest, RefusesWhatIsOutOfBounds) {
  EXPECT_EQ(id(loop(i, M, loop(j, N, store({i, j + 1})))), "verify-bounds");
  EXPECT_EQ(id(loop(i, M, loop(j, N, store({i - 1, j})))), "verify-bounds");
  EXPECT_EQ(id(loop(i, M, loop(j, N, store({i, j}, load(A, {i, j + 1}))))), "verify-bounds");
  EXPECT_EQ(id(loop(i, M, loop(j, N, store({j, i})))), "verify-bounds");
  EXPECT_EQ(id(loop(i, M, loop(j, N, Store::make(C, {i * N + j + 1}, number(0))))), "verify-bounds");
  EXPECT_EQ(id(store({Expr(0), Expr(0)})), "verify-bounds");  // M may be 0
  VerifyOptions options;
  options.facts.set(M, {.lo = 1, .hi = {}});
  options.facts.set(N, {.lo = 1, .hi = {}});
  EXPECT_EQ(id(store({Expr(0), Expr(0)}), options), "ok");
  options.bounds = false;
  EXPECT_EQ(id(store({Expr(-1), Expr(0)}), options), "ok");
  EXPECT_EQ(message(loop(i, M, loop(j, N, store({i, j + 1})))),
            "function f, `C[i, j + 1] = 1.0`: index of C: expected 0 <= index < N, got j + 1 in [1, ?]; clamp the "
            "index, guard the access, or "
            "state what is known of the extents");
}

TEST_F(VerifyTest, AcceptsTilesWithTheirTails) {
  const Expr row = io * 6 + ii;
  const Expr tiles = ceil_div(M, 6);
  // Peeled, guarded, clipped extent, shifted inwards.
  EXPECT_EQ(id(loop(io, floor_div(M, 6), loop(ii, 6, loop(j, N, store({row, j}))))), "ok");
  EXPECT_EQ(id(loop(io, tiles, loop(ii, 6, loop(j, N, store({row, j}))))), "verify-bounds");
  EXPECT_EQ(id(loop(io, tiles, loop(ii, 6, If::make(row < M, loop(j, N, store({row, j})))))), "ok");
  EXPECT_EQ(id(loop(io, tiles, loop(ii, min(Expr(6), M - io * 6), loop(j, N, store({row, j}))))), "ok");
  VerifyOptions options;
  options.facts.set(M, {.lo = 6, .hi = {}});
  EXPECT_EQ(id(loop(io, tiles, loop(ii, 6, loop(j, N, store({min(io * 6, M - 6) + ii, j})))), options), "ok");
  // The same, flat.
  EXPECT_EQ(id(loop(io, tiles, loop(ii, 6, If::make(row < M, loop(j, N, Store::make(C, {row * N + j}, number(0))))))),
            "ok");
}

TEST_F(VerifyTest, CountsConditionsOfSelectsAndAssertions) {
  const Expr left = select(j > 0, load(A, {i, j - 1}), number(0));
  EXPECT_EQ(id(loop(i, M, loop(j, N, store({i, j}, left)))), "ok");
  EXPECT_EQ(id(loop(i, M, loop(j, N, store({i, j}, select(j > 1, load(A, {i, j - 1}), load(A, {i, j - 1})))))),
            "verify-bounds");
  EXPECT_EQ(id(Block::make({Assert::make(M > 3 && N > 2, 1, "small"), store({Expr(3), Expr(2)})})), "ok");
  EXPECT_EQ(id(loop(i, M, LetStmt::make(x, min(i + 1, M - 1), loop(j, N, store({x, j}))))), "ok");
  const Expr clamped = let(x, max(j - 1, 0), load(A, {i, x}));
  EXPECT_EQ(id(loop(i, M, loop(j, N, store({i, j}, clamped)))), "ok");
}

TEST_F(VerifyTest, DataDependentIndicesNeedAClampOrAGuard) {
  const Expr k = load(idx, {i});
  EXPECT_EQ(id(loop(i, M, loop(j, N, store({i, j}, load(A, {k, j}))))), "verify-bounds");
  EXPECT_EQ(id(loop(i, M, loop(j, N, store({i, j}, load(A, {min(max(k, 0), M - 1), j}))))), "ok");
  EXPECT_EQ(id(loop(i, M, If::make(k >= 0 && k < M, loop(j, N, store({k, j}))))), "ok");
  EXPECT_EQ(id(loop(i, M, loop(j, N, store({i, j}, select(k >= 0 && k < M, load(A, {k, j}), number(0)))))), "ok");
  // A guard does not outlive a store to what it read.
  const Buffer own = make_buffer("own", kInt64, {M});
  const Expr r = load(own, {i});
  const Stmt write = Store::make(own, {i}, Expr(100));
  const Stmt good = loop(i, M, Block::make({write, If::make(r >= 0 && r < M, loop(j, N, store({r, j})))}));
  const Stmt bad = loop(i, M, If::make(r >= 0 && r < M, Block::make({write, loop(j, N, store({r, j}))})));
  EXPECT_EQ(id(Allocate::make(own, good)), "ok");
  EXPECT_EQ(id(Allocate::make(own, bad)), "verify-bounds");
  // Sums of loaded numbers may wrap around.
  EXPECT_EQ(id(loop(i, M, If::make(k >= 0 && k + 1 < M, loop(j, N, store({k + 1, j}))))), "verify-bounds");
  // A table that covers its index type.
  const Buffer table = make_buffer("table", kFloat32, {Expr(256)}), bytes = make_buffer("bytes", kUInt8, {M});
  LoopFunction f{"lut",
                 {table, bytes, C},
                 {M, N},
                 {C},
                 loop(i, M, loop(j, N, store({i, j}, load(table, {cast(kInt64, load(bytes, {i}))})))),
                 {}};
  EXPECT_TRUE(verify(f).ok());
}

TEST_F(VerifyTest, VectorsAreSeenLaneByLane) {
  const Expr columns = Ramp::make(jo * 8, Expr(1), 8);
  const Expr rows = Broadcast::make(i, 8);
  const auto row_of = [&](const Expr& extent, const Expr& predicate) {
    return loop(i, M, loop(jo, extent, Store::make(C, {rows, columns}, Broadcast::make(number(0), 8), predicate)));
  };
  EXPECT_EQ(id(row_of(floor_div(N, 8), {})), "ok");
  EXPECT_EQ(id(row_of(ceil_div(N, 8), {})), "verify-bounds");
  EXPECT_EQ(id(row_of(ceil_div(N, 8), columns < Broadcast::make(N, 8))), "ok");
  EXPECT_EQ(id(row_of(ceil_div(N, 8), columns < Broadcast::make(N + 1, 8))), "verify-bounds");
  const Expr masked = Load::make(A, {rows, columns}, columns < Broadcast::make(N, 8));
  EXPECT_EQ(id(loop(i, M, loop(jo, ceil_div(N, 8), Evaluate::make(masked)))), "ok");
  const Expr chosen =
      select(columns < Broadcast::make(N, 8), Load::make(A, {rows, columns}), Broadcast::make(number(0), 8));
  EXPECT_EQ(id(loop(i, M, loop(jo, ceil_div(N, 8), Evaluate::make(chosen)))), "ok");
  const Expr gather = Load::make(A, {rows, min(columns * 3, N - 1)});
  EXPECT_EQ(id(loop(i, M, loop(jo, ceil_div(N, 8), Evaluate::make(gather)))), "ok");
}

TEST_F(VerifyTest, AddressesMayPointBehindTheEndAndPrefetchesAnywhere) {
  EXPECT_EQ(id(Evaluate::make(Call::make(kHandle, Intrinsic::kAddressOf, {Load::make(C, {M, Expr(0)})}))), "ok");
  EXPECT_EQ(id(Evaluate::make(Call::make(kHandle, Intrinsic::kAddressOf, {Load::make(C, {M + 1, Expr(0)})}))),
            "verify-bounds");
  EXPECT_EQ(id(Evaluate::make(Call::make(kInt32, Intrinsic::kPrefetch, {Load::make(C, {M + 100, Expr(0)}), Expr(3)}))),
            "ok");
}

TEST_F(VerifyTest, Scopes) {
  EXPECT_EQ(id(loop(i, M, store({i, x}))), "verify-scope");
  EXPECT_EQ(id(loop(i, x, store({i, i}))), "verify-scope");
  EXPECT_EQ(id(loop(i, M, loop(i, N, Evaluate::make(i)))), "verify-scope");
  EXPECT_EQ(id(Block::make({loop(i, M, Evaluate::make(i)), loop(i, N, Evaluate::make(i))})), "ok");
  EXPECT_EQ(id(Block::make({loop(i, M, Evaluate::make(i + 1)), Evaluate::make(i + 1)})), "verify-scope");
  const Expr shared = i + 1;  // right inside the loop, wrong outside
  EXPECT_EQ(id(Block::make({loop(i, M, Evaluate::make(shared)), Evaluate::make(shared)})), "verify-scope");
  EXPECT_EQ(id(Evaluate::make(let(x, Expr(1), let(x, Expr(2), x)))), "verify-scope");
  const Buffer other = make_buffer("other", kFloat32, {Expr(4)});
  EXPECT_EQ(id(Store::make(other, {Expr(0)}, number(0))), "verify-scope");
  EXPECT_EQ(id(Allocate::make(other, Store::make(other, {Expr(0)}, number(0)))), "ok");
  EXPECT_EQ(id(Block::make({Allocate::make(other, Evaluate::make(Expr(0))), Evaluate::make(load(other, {Expr(0)}))})),
            "verify-scope");
  EXPECT_EQ(id(loop(i, M, loop(j, N, Store::make(A, {i, j}, number(0))))), "verify-scope");  // an input
  EXPECT_EQ(id(Allocate::make(C, Evaluate::make(Expr(0)))), "verify-scope");
}

TEST_F(VerifyTest, Types) {
  // The constructors refuse most of what is wrong; what is left are counts and constants.
  EXPECT_EQ(id(loop(i, M, store({i, i, i}))), "verify-type");
  EXPECT_EQ(id(Evaluate::make(Load::make(A, {Expr(0), Expr(0), Expr(0)}))), "verify-type");
  const Expr vector = Ramp::make(Expr(0), Expr(1), 4);
  EXPECT_EQ(id(Evaluate::make(Call::make(kInt64, Intrinsic::kExtractLane, {vector, Expr(3)}))), "ok");
  EXPECT_EQ(id(Evaluate::make(Call::make(kInt64, Intrinsic::kExtractLane, {vector, Expr(4)}))), "verify-type");
  EXPECT_EQ(id(loop(i, M, Evaluate::make(Call::make(kInt64, Intrinsic::kExtractLane, {vector, i})))), "verify-type");
  EXPECT_EQ(id(Evaluate::make(Call::make(kHandle, Intrinsic::kAddressOf, {Expr(0)}))), "verify-type");
}

TEST_F(VerifyTest, ParallelTiles) {
  VerifyOptions options;
  options.bounds = false;
  const Expr row = io * 6 + ii, column = jo * 16 + ji;
  const auto nest = [&](const Stmt& body) {
    return parallel(io, floor_div(M, 6), loop(jo, floor_div(N, 16), loop(ii, 6, loop(ji, 16, body))));
  };
  EXPECT_EQ(id(nest(store({row, column})), options), "ok");
  EXPECT_EQ(id(nest(Store::make(C, {row * N + column}, number(0)))), "ok");  // flat, symbolic stride
  EXPECT_EQ(id(nest(store({row, column}, load(C, {row, column}) + number(1))), options), "ok");
  EXPECT_EQ(id(nest(store({ii, column})), options), "verify-race");
  EXPECT_EQ(id(nest(store({row + jo, column})), options), "verify-race");
  EXPECT_EQ(id(nest(store({row, column}, load(C, {row + 1, column}))), options), "verify-race");
  options.races = false;
  EXPECT_EQ(id(nest(store({ii, column})), options), "ok");
}

TEST_F(VerifyTest, ParallelLoopsOfManyShapes) {
  VerifyOptions options;
  options.bounds = false;
  const Buffer flat = make_buffer("flat", kFloat32, {Expr(4608 * 100)});
  const auto check = [&](Stmt body) {
    const Result<void> result = verify({"g", {flat, C}, {M, N}, {flat, C}, std::move(body), {}}, options);
    return result.ok() ? std::string("ok") : result.failure().id;
  };
  const auto at = [&](const Expr& index) { return Store::make(flat, {index}, number(0)); };
  // An inner dimension in parallel: 4608 io + 768 ii + 16 jo + ji.
  EXPECT_EQ(check(loop(io, 100, parallel(jo, 48, loop(ii, 6, loop(ji, 16, at(io * 4608 + ii * 768 + jo * 16 + ji)))))),
            "ok");
  EXPECT_EQ(check(loop(io, 100, parallel(jo, 48, loop(ii, 6, loop(ji, 17, at(io * 4608 + ii * 768 + jo * 16 + ji)))))),
            "verify-race");
  EXPECT_EQ(check(loop(io, 100, parallel(jo, 49, loop(ii, 6, loop(ji, 16, at(io * 4608 + ii * 768 + jo * 16 + ji)))))),
            "verify-race");
  // Unrolled rows.
  EXPECT_EQ(check(parallel(io, 100, Block::make({at(io * 3), at(io * 3 + 1), at(io * 3 + 2)}))), "ok");
  EXPECT_EQ(check(parallel(io, 100, Block::make({at(io * 3), at(io * 3 + 1), at(io * 3 + 3)}))), "verify-race");
  EXPECT_EQ(check(parallel(io, 100, Block::make({at(io), at(io + 100)}))), "ok");
  EXPECT_EQ(check(parallel(io, 100, Block::make({at(io), at(io + 99)}))), "verify-race");
  // Vector stores.
  const auto vector = [&](const Expr& base) {
    return Store::make(flat, {Ramp::make(base, Expr(1), 8)}, Broadcast::make(number(0), 8));
  };
  EXPECT_EQ(check(parallel(io, 100, vector(io * 8))), "ok");
  EXPECT_EQ(check(parallel(io, 100, vector(io * 7))), "verify-race");
  // A fused loop taken apart again.
  EXPECT_EQ(check(parallel(x, M * 16, Store::make(C, {floor_div(x, 16), floor_mod(x, 16)}, number(0)))), "ok");
  EXPECT_EQ(check(parallel(x, M * 16, Store::make(C, {floor_div(x, 16), floor_mod(x, 8)}, number(0)))), "verify-race");
  const Buffer cube = make_buffer("cube", kFloat32, {Expr(5), Expr(16), Expr(7)});
  const Stmt fused = parallel(
      x, 560, Store::make(cube, {floor_div(x, 112), floor_mod(floor_div(x, 7), 16), floor_mod(x, 7)}, number(0)));
  EXPECT_TRUE(verify({"h", {cube}, {}, {cube}, fused, {}}).ok());
  // An inner loop that starts at the tile.
  EXPECT_EQ(check(parallel(io, 10, For::make(i, io * 4, Expr(4), ForKind::kSerial, at(i)))), "ok");
  EXPECT_EQ(check(parallel(io, 10, For::make(i, io * 4, Expr(5), ForKind::kSerial, at(i)))), "verify-race");
  EXPECT_EQ(check(parallel(io, 10, LetStmt::make(x, io * 4 + 1, at(x)))), "ok");
  // Clipped extents, and a tail that is shifted inwards over rows of its neighbour.
  EXPECT_EQ(check(parallel(io, ceil_div(M, 6),
                           loop(ii, min(Expr(6), M - io * 6), Store::make(C, {io * 6 + ii, Expr(0)}, number(0))))),
            "ok");
  EXPECT_EQ(
      check(parallel(io, ceil_div(M, 6), loop(ii, 6, Store::make(C, {min(io * 6, M - 6) + ii, Expr(0)}, number(0))))),
      "verify-race");
  // Reductions into one place, private buffers, one iteration.
  EXPECT_EQ(check(parallel(io, 10, at(Expr(0)))), "verify-race");
  EXPECT_EQ(check(parallel(io, 1, at(Expr(0)))), "ok");
  const Buffer own = make_buffer("own", kFloat32, {Expr(4)});
  EXPECT_EQ(check(parallel(io, 10, Allocate::make(own, Block::make({Store::make(own, {Expr(0)}, number(0)), at(io)})))),
            "ok");
  EXPECT_EQ(check(Allocate::make(own, parallel(io, 10, Store::make(own, {Expr(0)}, number(0))))), "verify-race");
  // Only one iteration gets there.
  EXPECT_EQ(check(parallel(io, 10, If::make(io == 3, at(Expr(3)), at(io)))), "ok");
  EXPECT_EQ(check(parallel(io, 10, If::make(io == 3, at(Expr(4)), at(io)))), "verify-race");
  EXPECT_EQ(check(parallel(io, 10, If::make(io < 3, at(Expr(3)), at(io)))), "verify-race");
  // Scattered by data.
  const Buffer where = make_buffer("where", kInt64, {Expr(100)});
  const Stmt scatter = parallel(io, 100, at(min(max(load(where, {io}), 0), 99)));
  EXPECT_EQ(verify({"s", {flat, where}, {}, {flat}, scatter, {}}).failure().id, "verify-race");
}

// A parallel loop over `p` in text; what the verifier says of races in it.
std::string races(const std::string& body, const std::string& extent = "108") {
  const Result<LoopFunction> function = parse_function(
      "func f(C: f32[65536], D: f32[64, 2048]) -> C, D {\n  parallel p in " + extent + " {\n" + body + "\n  }\n}\n");
  if (!function.ok()) return function.failure().message;
  VerifyOptions options;
  options.bounds = false;
  const Result<void> result = verify(function.value(), options);
  return result.ok() ? "ok" : result.failure().id;
}

TEST(VerifyRacesTest, ConditionsOnRemaindersKeepPiecesApart) {
  // The tail of a fused loop, peeled: rows of 77 in 8 pieces of 9 and one of 5.
  const auto peeled = [](const std::string& body, const std::string& tail, const std::string& count = "5") {
    return races("if p % 9 < 8 { for i in 9 { " + body + " = 1.0 } } else { for j in " + count + " { " + tail +
                 " = 2.0 } }");
  };
  EXPECT_EQ(peeled("D[p // 9, p % 9 * 9 + i]", "D[p // 9, j + 72]"), "ok");
  EXPECT_EQ(peeled("C[p // 9 * 77 + p % 9 * 9 + i]", "C[p // 9 * 77 + j + 72]"), "ok");
  EXPECT_EQ(peeled("D[p // 9, p % 9 * 9 + i]", "D[p // 9, p % 9 * 9 + j]"), "ok");
  // The tail reaches back into the last whole piece, or over into the next row.
  EXPECT_EQ(peeled("D[p // 9, p % 9 * 9 + i]", "D[p // 9, j + 71]"), "verify-race");
  EXPECT_EQ(peeled("C[p // 9 * 77 + p % 9 * 9 + i]", "C[p // 9 * 77 + j + 72]", "6"), "verify-race");
  // The row is missing: the tails of all rows meet.
  EXPECT_EQ(peeled("D[p // 9, p % 9 * 9 + i]", "D[0, j + 72]"), "verify-race");
  // A wrong quotient or remainder.
  EXPECT_EQ(peeled("D[p // 9, p % 9 * 9 + i]", "D[p // 8, j + 72]"), "verify-race");
  EXPECT_EQ(races("if p % 9 < 8 { for i in 9 { D[p // 9, p % 9 * 9 + i] = 1.0 } } else { D[p // 9, 63] = 2.0 }"),
            "verify-race");
  EXPECT_EQ(races("if p % 9 < 7 { for i in 9 { D[p // 9, p % 9 * 9 + i] = 1.0 } } else { D[p // 9, 72] = 2.0 }"),
            "verify-race");
  EXPECT_EQ(races("if p % 9 == 8 { D[p // 9, 72] = 2.0 } else { for i in 9 { D[p // 9, p % 9 * 9 + i] = 1.0 } }"),
            "ok");
}

TEST(VerifyRacesTest, ConditionsInOneAnotherAndThroughLets) {
  // Three loops in one: p = (a * 3 + b) * 5 + c; both inner ones have a tail.
  const std::string three =
      "let b: i64 = p // 5 % 3 let c: i64 = p % 5 "
      " if b < 2 && c < 4 { for i in 4 { C[p // 15 * 100 + b * 40 + c * 8 + i] = 1.0 } }"
      " if b < 2 && c >= 4 { C[p // 15 * 100 + b * 40 + 32] = 1.0 }"
      " if b >= 2 { if c < 4 { C[p // 15 * 100 + 80 + c] = 1.0 } else { C[p // 15 * 100 + LAST] = 1.0 } }";
  const auto with = [&](const std::string& last) {
    std::string text = three;
    return races(text.replace(text.find("LAST"), 4, last), "105");
  };
  EXPECT_EQ(with("84"), "ok");
  EXPECT_EQ(with("99"), "ok");
  EXPECT_EQ(with("83"), "verify-race");
  EXPECT_EQ(with("72"), "verify-race");
  EXPECT_EQ(with("100"), "verify-race");
  // Conditions of p itself, with other strides on both sides.
  EXPECT_EQ(races("if p < 10 { C[p * 2] = 1.0 } else { C[p + 10] = 1.0 }"), "ok");
  EXPECT_EQ(races("if p < 10 { C[p * 2] = 1.0 } else { C[p + 8] = 1.0 }"), "verify-race");
  EXPECT_EQ(races("if p < 10 { C[p] = 1.0 } else { C[p + 1] = C[p] }"), "verify-race");
  EXPECT_EQ(races("if p < 10 { C[p] = 1.0 } else { C[p] = C[p - 10] }", "20"), "verify-race");
  EXPECT_EQ(races("if p < 10 { C[p] = 1.0 } else { C[p + 100] = C[p] }", "20"), "ok");
  // A condition with an inner loop's counter holds on each side for itself.
  EXPECT_EQ(races("for i in 8 { if i < 5 { C[p * 5 + i] = 1.0 } }"), "ok");
  EXPECT_EQ(races("for i in 8 { if i < 6 { C[p * 5 + i] = 1.0 } }"), "verify-race");
  EXPECT_EQ(races("for i in 8 { if p + i < 5 { C[p] = 1.0 } else { C[p + i] = 1.0 } }"), "verify-race");
  EXPECT_EQ(races("for i in 8 { if p + i == 5 { C[5] = 1.0 } }"), "verify-race");
  // The same load with and without the condition: both count.
  EXPECT_EQ(races("C[p] = select(p < 1, C[p + 1], 0.0)", "1"), "ok");
  EXPECT_EQ(races("C[p] = select(p >= 107, C[p], C[p + 1])"), "verify-race");
  EXPECT_EQ(races("C[p] = select(p >= 108, C[p + 1], C[p])"), "ok");  // never
  EXPECT_EQ(races("C[p] = select(p >= 107, C[p + 1], 0.0) + C[p + 1]"), "verify-race");
  // What is loaded may change between two conditions.
  EXPECT_EQ(races("if C[p] < 1.0 { C[0] = 1.0 } else { C[p] = 2.0 }"), "verify-race");
}

TEST_F(VerifyTest, DeclarationsPass) {
  LoopFunction f = function(loop(i, M, store({i, x})));
  f.attrs[kDeclaration] = 1;
  EXPECT_TRUE(verify(f).ok());
}

}  // namespace
}  // namespace tensmith
