#include "tests/support/round_trip.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tensor/equal_hash.h"
#include "tensor/parse.h"
#include "tensor/print.h"

namespace tensmith {

LoopFunction every_statement_function() {
  const Var m("M"), i("i"), j("j"), k("k"), s("s"), t("t", kFloat32), scale("scale", kFloat32);
  const Buffer a = make_buffer("A", kFloat32, {m, 16});
  const Buffer c = make_buffer("C", kFloat32, {m, 16}, Scope::kGlobal, 32);
  const Buffer w = make_buffer("W", kInt8, {16}, Scope::kConstant);
  const Buffer count = make_buffer("count", kInt64, {}, Scope::kRegister);
  const Buffer tile = make_buffer("tile", kFloat32, {16}, Scope::kStack, 16);
  const Stmt copy = For::make(j, 0, 16, ForKind::kVectorized, Store::make(tile, {j}, load(a, {i, j}) * scale));
  const Stmt unrolled = For::make(
      k, Expr(i) * 2, 4, ForKind::kUnrolled,
      Store::make(c, {i, floor_mod(k, 16)}, load(tile, {floor_mod(k, 16)}) + Cast::make(kFloat32, load(w, {0}))),
      {{"factor", 2}, {"two words", -1}});
  const Stmt counting = Block::make({
      Store::make(count, {}, Expr(0)),
      While::make(load(count, {}) < 3, Store::make(count, {}, load(count, {}) + 1)),
      If::make(Expr(i) < 1, Store::make(c, {i, 0}, make_const(kFloat32, 1)),
               If::make(Expr(i) < 2, Store::make(c, {i, 0}, make_const(kFloat32, 2)),
                        Store::make(c, {i, 0}, make_const(kFloat32, 3)))),
      If::make(Expr(i) == 5, {}, Store::make(c, {i, 1}, make_zero(kFloat32))),
  });
  const Stmt vector =
      Store::make(c, {i, Ramp::make(8, 1, 8)}, Broadcast::make(t, 8), Ramp::make(0, 1, 8) < Broadcast::make(5, 8));
  const Stmt constant = Store::make(c, {i, Ramp::make(0, 1, 4)}, make_const(kFloat32.with_lanes(4), 0.25));
  const Stmt row =
      Allocate::make(tile, Block::make({copy, unrolled, Allocate::make(count, counting),
                                        LetStmt::make(t, load(a, {i, 3}), Block::make({vector, constant}))}));
  const Stmt body = Block::make({
      Assert::make(Expr(m) >= 1, 7, "M is \"positive\"\n"),
      Evaluate::make(Call::make(kInt32, Intrinsic::kPrefetch, {load(a, {0, 0}), 3})),
      LetStmt::make(s, Expr(m) - 1, Evaluate::make(Call::make_extern(kInt32, "note it", {s}))),
      For::make(i, 0, m, ForKind::kParallel, row),
  });
  return LoopFunction{"every statement", {a, w, c}, {m, scale}, {c}, body, {{"alignment", 64}}};
}

LoopFunction every_expression_function() {
  const Buffer f = make_buffer("F", kFloat32, {16}), d = make_buffer("D", kFloat64, {16}),
               n = make_buffer("N", kInt32, {16});
  const Buffer p = make_buffer("P", kBool, {16}), bytes = make_buffer("B", kInt8, {64}),
               q = make_buffer("Q", kUInt8, {64});
  const Buffer half = make_buffer("H", kFloat16, {16}), brain = make_buffer("G", kBFloat16, {16});
  const Var x("x"), y("y", kFloat32);
  std::vector<Stmt> stmts;
  const Expr ramp = Ramp::make(0, 1, 8), vector = Load::make(f, {ramp}), ints = Load::make(n, {ramp});
  const Expr e0 = load(f, {0}), e1 = load(f, {1}), e2 = load(f, {2}), i0 = load(n, {0}), i1 = load(n, {1}),
             b0 = load(p, {0}), b1 = load(p, {1});
  const auto put = [&](const Expr& e) {
    const DType type = e.dtype().element();
    const Buffer& to = type == kFloat32    ? f
                       : type == kFloat64  ? d
                       : type == kInt32    ? n
                       : type == kFloat16  ? half
                       : type == kBFloat16 ? brain
                       : type == kInt8     ? bytes
                       : type == kUInt8    ? q
                                           : p;
    if (type == kInt64 || type == kHandle) stmts.push_back(Evaluate::make(e));
    else stmts.push_back(Store::make(to, {e.dtype().lanes == 1 ? Expr(0) : Ramp::make(0, 1, e.dtype().lanes)}, e));
  };
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const DType type : {kFloat32, kFloat64, kFloat16, kBFloat16})
    for (const double value : {0.1, -0.0, 1e-8, 12345678.0, kInf, -kInf, std::nan("")})
      put(FloatImm::make(type, value));
  for (const DType type : {kInt8, kUInt8, kInt32}) put(IntImm::make(type, -5));
  put(make_bool(false));
  for (const BinaryOp op :
       {BinaryOp::kAdd, BinaryOp::kSub, BinaryOp::kMul, BinaryOp::kDiv, BinaryOp::kMin, BinaryOp::kMax}) {
    put(Binary::make(op, e0, e1));
    put(Binary::make(op, vector, make_const(kFloat32, 2.5)));
  }
  for (const BinaryOp op : {BinaryOp::kFloorDiv, BinaryOp::kFloorMod, BinaryOp::kTruncDiv, BinaryOp::kTruncMod,
                            BinaryOp::kShl, BinaryOp::kShr, BinaryOp::kAnd, BinaryOp::kOr, BinaryOp::kXor})
    put(Binary::make(op, i0, i1));
  for (const BinaryOp op : {BinaryOp::kEQ, BinaryOp::kNE, BinaryOp::kLT, BinaryOp::kLE, BinaryOp::kGT, BinaryOp::kGE}) {
    put(Binary::make(op, i0, i1));
    put(Binary::make(op, ints, make_const(kInt32, -3)));
  }
  for (const BinaryOp op : {BinaryOp::kAnd, BinaryOp::kOr, BinaryOp::kXor}) put(Binary::make(op, b0, b1));
  put(Not::make(b0));
  put(Not::make(i0));
  put(Select::make(b0, e0, e1));
  put(Select::make(Load::make(p, {ramp}), vector, make_const(kFloat32, 0)));
  put(Select::make(b0, vector, make_const(kFloat32.with_lanes(8), 1)));
  put(Cast::make(kInt32, e0));
  put(Cast::make(kFloat16.with_lanes(8), vector));
  put(Load::make(f, {Ramp::make(14, 1, 4)}, Ramp::make(0, 1, 4) < Broadcast::make(2, 4)));
  put(Load::make(f, {Cast::make(kInt64.with_lanes(8), floor_mod(ints, make_const_int(kInt32, 16)))}));
  put(Broadcast::make(e0, 8));
  put(Ramp::make(i0, make_const_int(kInt32, 3), 4));
  put(Let::make(y, e0 * e1, Expr(y) * Expr(y) + Let::make(x, Expr(3), Cast::make(kFloat32, x))));
#define TS_INTRINSIC(name, text, arity, purity) Intrinsic::k##name,
  constexpr Intrinsic kAll[] = {
#include "tensor/intrinsics.def"
  };
#undef TS_INTRINSIC
  for (const Intrinsic id : kAll) {
    switch (id) {
      case Intrinsic::kBitcast:
        put(Call::make(kInt32, id, {e0}));
        put(Call::make(kUInt8.with_lanes(4), id, {e0}));
        break;
      case Intrinsic::kPopCount:
      case Intrinsic::kLeadingZeros: put(call(id, {i0})); break;
      case Intrinsic::kMulHigh: put(call(id, {ints, ints})); break;
      case Intrinsic::kReduceAnd:
      case Intrinsic::kReduceOr: put(Call::make(kBool, id, {Load::make(p, {ramp})})); break;
      case Intrinsic::kReduceAdd:
      case Intrinsic::kReduceMul:
      case Intrinsic::kReduceMin:
      case Intrinsic::kReduceMax: put(Call::make(kFloat32, id, {vector})); break;
      case Intrinsic::kExtractLane: put(Call::make(kFloat32, id, {vector, 5})); break;
      case Intrinsic::kShuffle: put(Call::make(kFloat32.with_lanes(3), id, {vector, 7, 0, 7})); break;
      case Intrinsic::kConcat: put(Call::make(kFloat32.with_lanes(10), id, {e0, vector, e1})); break;
      case Intrinsic::kDotAccumulate:
        put(call(id, {Load::make(n, {Ramp::make(0, 1, 4)}), Load::make(q, {Ramp::make(0, 1, 16)}),
                      Load::make(bytes, {Ramp::make(16, 1, 16)})}));
        break;
      case Intrinsic::kAddressOf: put(Call::make(kHandle, id, {e2})); break;
      case Intrinsic::kPrefetch: stmts.push_back(Evaluate::make(Call::make(kInt32, id, {e2, 3}))); break;
      case Intrinsic::kExtern: break;  // calls a function of the program; see every_statement_function
      default: {
        const int arity = intrinsic_info(id).arity;
        std::vector<Expr> args = {e0, e1, e2}, vectors(arity, vector);
        args.resize(arity);
        put(call(id, args));
        put(call(id, vectors));
      }
    }
  }
  return LoopFunction{"every_expression",
                      {f, d, n, p, bytes, q, half, brain},
                      {},
                      {f, d, n, p, bytes, q, half, brain},
                      Block::make(stmts),
                      {}};
}

void expect_round_trip(const LoopFunction& f) {
  const std::string text = to_string(f);
  const Result<LoopFunction> back = parse_function(text);
  ASSERT_TRUE(back.ok()) << back.failure().message << "\n" << text;
  EXPECT_TRUE(equal(*back, f)) << text;
  EXPECT_EQ(to_string(*back), text);
  EXPECT_EQ(structural_hash(*back), structural_hash(f)) << text;
}

}  // namespace tensmith
