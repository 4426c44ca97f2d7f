// Sizes that models compute: shapes taken apart, scaled in floating point and put together again, must stay known.
#include <gtest/gtest.h>

#include "graph/op_def.h"
#include "graph/ops/sample.h"

namespace tensmith::graph {
namespace {

using ops::attrs;

class KnownElements : public testing::Test {
 protected:
  Value input(DType dtype, std::vector<Expr> shape) { return editor_.add_input("x", {dtype, std::move(shape), {}}); }
  Value add(const std::string& op, std::vector<Value> inputs, AttrMap attributes = {}) {
    return {editor_.add(op, std::move(inputs), std::move(attributes)), 0};
  }
  Value ints(std::vector<int64_t> values) {
    return editor_.add_constant(Constant::from_ints(kInt64, {static_cast<int64_t>(values.size())}, values));
  }
  Value floats(std::vector<double> values) {
    return editor_.add_constant(Constant::from_floats(kFloat32, {static_cast<int64_t>(values.size())}, values));
  }
  std::string elements(Value v) const {
    std::string text;
    for (const Expr& element : graph_.type(v).value) text += (text.empty() ? "" : ", ") + dim_to_string(element);
    return text;
  }

  Graph graph_;
  GraphEditor editor_{graph_};
};

TEST_F(KnownElements, FollowFloatScalesOfFixedSizes) {
  const Value shape = add("Shape", {input(kFloat32, {1, 3, 5, 7})});
  const Value size = add("Slice", {shape, ints({2}), ints({4})});
  const Value scaled = add("Mul", {add("Cast", {size}, attrs({{"to", AttrValue(kFloat32)}})), floats({1.5})});
  EXPECT_EQ(elements(add("Cast", {add("Floor", {scaled})}, attrs({{"to", AttrValue(kInt64)}}))), "7, 10");
  EXPECT_EQ(elements(add("Cast", {add("Ceil", {scaled})}, attrs({{"to", AttrValue(kInt64)}}))), "8, 11");
  EXPECT_EQ(elements(add("Cast", {scaled}, attrs({{"to", AttrValue(kInt32)}}))), "7, 10");
}

TEST_F(KnownElements, FollowWholeScalesOfOpenSizes) {
  const Value shape = add("Shape", {input(kFloat32, {1, 3, editor_.dim("h"), editor_.dim("w")})});
  const Value size = add("Cast", {add("Slice", {shape, ints({2}), ints({4})})}, attrs({{"to", AttrValue(kFloat32)}}));
  const Value doubled = add("Floor", {add("Mul", {size, floats({2})})});
  const Value sizes =
      add("Concat", {ints({1, 3}), add("Cast", {doubled}, attrs({{"to", AttrValue(kInt64)}}))}, attrs({{"axis", 0}}));
  EXPECT_EQ(elements(sizes), "1, 3, h * 2, w * 2");
  const Value resized = add("Resize", {Value{graph_.inputs[0], 0}, {}, {}, sizes}, attrs({{"mode", "nearest"}}));
  EXPECT_EQ(to_string(graph_.type(resized)), "f32[1, 3, h * 2, w * 2]");
  // Half of an open size is no whole number that could be followed.
  EXPECT_EQ(elements(add("Mul", {size, floats({0.5})})), "");
  EXPECT_EQ(elements(add("Div", {size, floats({2})})), "");
}

TEST_F(KnownElements, FollowIntegerArithmetic) {
  const Value shape = add("Shape", {input(kFloat32, {editor_.dim("n"), 6})});
  EXPECT_EQ(elements(add("Mul", {shape, ints({2})})), "n * 2, 12");
  EXPECT_EQ(elements(add("Div", {shape, ints({4})})), "floor_div(n, 4), 1");
  EXPECT_EQ(elements(add("Sub", {shape, ints({1, 2})})), "n - 1, 4");
  EXPECT_EQ(elements(add("Equal", {shape, ints({-1})})), "0, 0");
  EXPECT_EQ(elements(add("Where", {add("Equal", {shape, ints({-1})}), ints({1}), shape})), "n, 6");
  EXPECT_EQ(elements(add("ReduceProd", {shape}, attrs({{"keepdims", 0}}))), "n * 6");
  EXPECT_EQ(elements(add("Equal", {shape, ints({6})})), "") << "n may be 6 or not";
}

}  // namespace
}  // namespace tensmith::graph
