// What expand_math leaves behind, without running it.
#include "codegen/math/expand.h"

#include <gtest/gtest.h>

#include <set>

#include "codegen/math/ir.h"
#include "tensor/walk.h"

namespace tensmith {
namespace {

/// Every intrinsic that occurs.
std::set<Intrinsic> intrinsics_of(const Expr& e) {
  std::set<Intrinsic> found;
  visit(e, [&](const Expr& node) {
    if (const auto* call = node.as<Call>()) found.insert(call->id);
    return true;
  });
  return found;
}

int count_kind(const Expr& e, NodeKind kind) {
  int count = 0;
  visit(e, [&](const Expr& node) {
    count += node.kind() == kind;
    return true;
  });
  return count;
}

const std::set<Intrinsic> kPlain = {Intrinsic::kFma,      Intrinsic::kAbs,    Intrinsic::kSqrt,    Intrinsic::kCopySign,
                                    Intrinsic::kMinNum,   Intrinsic::kMaxNum, Intrinsic::kBitcast, Intrinsic::kTrunc,
                                    Intrinsic::kReduceOr, Intrinsic::kMulHigh};
constexpr Intrinsic kUnary[] = {
    Intrinsic::kExp,  Intrinsic::kLog,  Intrinsic::kTanh,  Intrinsic::kErf,   Intrinsic::kSigmoid, Intrinsic::kRsqrt,
    Intrinsic::kSin,  Intrinsic::kCos,  Intrinsic::kTan,   Intrinsic::kAsin,  Intrinsic::kAcos,    Intrinsic::kAtan,
    Intrinsic::kSinh, Intrinsic::kCosh, Intrinsic::kAsinh, Intrinsic::kAcosh, Intrinsic::kAtanh};

TEST(ExpandMath, LeavesOnlyMachineInstructions) {
  for (const DType type : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
    for (const int lanes : {1, 5, 16}) {
      for (const bool fast : {false, true}) {
        const Var x("x", type.with_lanes(lanes)), y("y", type.with_lanes(lanes));
        std::vector<Expr> calls{call(Intrinsic::kPow, {x, y})};
        for (const Intrinsic id : kUnary) calls.push_back(call(id, {x * y}));
        for (const Expr& e : calls) {
          const Expr expanded = expand_math(e, {.fast = fast});
          EXPECT_EQ(expanded.dtype(), e.dtype());
          for (const Intrinsic id : intrinsics_of(expanded))
            EXPECT_TRUE(kPlain.contains(id))
                << intrinsic_info(id).name << " in " << intrinsic_info(e.as<Call>()->id).name;
        }
      }
    }
  }
}

TEST(ExpandMath, ComputesArgumentsOnceAndReachesNestedCalls) {
  const Buffer b = make_buffer("b", kFloat32, {Expr(8)});
  const Expr e = expand_math(call(Intrinsic::kExp, {call(Intrinsic::kTanh, {load(b, {Expr(3)})})}) +
                             call(Intrinsic::kAbs, {load(b, {Expr(1)})}));
  EXPECT_EQ(count_kind(e, NodeKind::kLoad), 2);
  EXPECT_FALSE(intrinsics_of(e).contains(Intrinsic::kTanh));
  EXPECT_FALSE(intrinsics_of(e).contains(Intrinsic::kExp));
}

TEST(ExpandMath, RewritesStatements) {
  const Buffer b = make_buffer("b", kFloat32, {Expr(8)});
  const Var i("i");
  const Stmt body = Store::make(b, {i}, call(Intrinsic::kLog, {load(b, {i})}));
  const Stmt expanded = expand_math(For::make(i, Expr(0), Expr(8), ForKind::kSerial, body));
  bool has_log = false;
  visit(
      expanded, [](const Stmt&) { return true; },
      [&](const Expr& e) {
        if (const auto* call = e.as<Call>()) has_log |= call->id == Intrinsic::kLog;
        return true;
      });
  EXPECT_FALSE(has_log);
  // What holds no function stays the same object.
  const Stmt plain = Store::make(b, {i}, load(b, {i}) + load(b, {Expr(0)}));
  EXPECT_TRUE(expand_math(plain).same_as(plain));
}

TEST(ExpandMath, SmallFloatsAreComputedInSingle) {
  const Var x("x", kFloat16);
  const Expr e = expand_math(call(Intrinsic::kExp, {x}));
  ASSERT_NE(e.as<Cast>(), nullptr);
  EXPECT_EQ(e.as<Cast>()->value.dtype(), kFloat32);
  // Values of f16 never need the reduction of large arguments, those of bf16 do.
  EXPECT_FALSE(intrinsics_of(expand_math(call(Intrinsic::kSin, {Var("x", kFloat16.with_lanes(8))})))
                   .contains(Intrinsic::kReduceOr));
  EXPECT_TRUE(intrinsics_of(expand_math(call(Intrinsic::kSin, {Var("x", kBFloat16.with_lanes(8))})))
                  .contains(Intrinsic::kReduceOr));
}

TEST(ExpandMath, WithoutFmaSingleIsFusedInDouble) {
  const Var x("x", kFloat32.with_lanes(4));
  for (const Intrinsic id : kUnary) {
    visit(expand_math(call(id, {x}), {.fma = false}), [&](const Expr& e) {
      const auto* call = e.as<Call>();
      EXPECT_FALSE(call && call->id == Intrinsic::kFma && e.dtype().bits == 32) << intrinsic_info(id).name;
      return true;
    });
  }
}

TEST(ExpandMath, ConstantExponentsAreShort) {
  const Var x("x", kFloat32.with_lanes(16));
  const auto size = [&](double y) {
    int nodes = 0;
    visit(expand_math(call(Intrinsic::kPow, {x, make_const(x.dtype(), y)})),
          [&](const Expr&) { return ++nodes, true; });
    return nodes;
  };
  for (const double y : {0.0, 1.0, 2.0, -1.0, 0.5, 3.0}) EXPECT_LT(size(y), 40) << y;
  EXPECT_GT(size(1.5), 100);
}

TEST(Share, NamesWhatOccursTwice) {
  const Var x("x", kFloat32);
  const Expr square = x * x, sum = square + x;
  const Expr shared = math::share(square * sum + sum);
  EXPECT_EQ(count_kind(shared, NodeKind::kLet), 2);  // square and sum
  int products = 0;
  visit(shared, [&](const Expr& e) {
    if (const auto* op = e.as<Binary>()) products += op->op == BinaryOp::kMul;
    return true;
  });
  EXPECT_EQ(products, 2);
  // Nothing is named that occurs once, and leaves never.
  const Expr single = (x + x) * x;
  EXPECT_TRUE(math::share(single).same_as(single));
  // A Let inside stays closed: it is an arm of its own.
  const Var y("y", kFloat32);
  const Expr arm = Let::make(y, x * x, y + y);
  const Expr outside = math::share(select(x > Expr(0), arm, x));
  EXPECT_EQ(outside.kind(), NodeKind::kSelect);
}

}  // namespace
}  // namespace tensmith
