#include <gtest/gtest.h>

#include <cmath>

#include "graph/op_def.h"

namespace tensmith::graph {
namespace {

TEST(Constant, ConvertsToEveryType) {
  const std::vector<int64_t> ints = {-3, 0, 5};
  for (DType dtype : {kInt4, kInt8, kInt16, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64}) {
    const Constant c = Constant::from_ints(dtype, {3}, ints);
    EXPECT_EQ(c.ints(), ints) << to_string(dtype);
    EXPECT_EQ(c.float_at(0), -3.0) << to_string(dtype);
    EXPECT_EQ(c.num_bytes(), 3 * dtype.bytes());
  }
  EXPECT_EQ(Constant::from_ints(kUInt8, {3}, ints).ints(), (std::vector<int64_t>{253, 0, 5}));
  EXPECT_EQ(Constant::from_ints(kBool, {3}, ints).ints(), (std::vector<int64_t>{1, 0, 1}));
  EXPECT_EQ(Constant::from_ints(kInt4, {1}, std::vector<int64_t>{9}).int_at(0), -7);
}

TEST(Constant, FloatsSaturateAsCastsDo) {
  const std::vector<double> values = {1e10, -1e10, std::nan(""), -1.9};
  EXPECT_EQ(Constant::from_floats(kInt8, {4}, values).ints(), (std::vector<int64_t>{127, -128, 0, -1}));
  EXPECT_EQ(Constant::from_floats(kUInt8, {4}, values).ints(), (std::vector<int64_t>{255, 0, 0, 0}));
  EXPECT_TRUE(std::isinf(Constant::from_floats(kFloat16, {4}, values).float_at(0)));
  EXPECT_EQ(Constant::from_floats(kFloat16, {1}, std::vector<double>{65504 + 15}).float_at(0), 65504);
}

TEST(Constant, DigestTellsTypeShapeAndContentApart) {
  const std::vector<int64_t> values = {1, 2, 3, 4};
  const std::string base = digest(Constant::from_ints(kInt32, {4}, values));
  EXPECT_EQ(base.size(), 32u);
  EXPECT_EQ(base, digest(Constant::from_ints(kInt32, {4}, values)));
  EXPECT_NE(base, digest(Constant::from_ints(kInt32, {2, 2}, values)));
  EXPECT_NE(base, digest(Constant::from_ints(kUInt32, {4}, values)));
  EXPECT_NE(base, digest(Constant::from_ints(kInt32, {4}, std::vector<int64_t>{1, 2, 3, 5})));
  std::vector<int64_t> large(1000, 7);
  const std::string first = digest(Constant::from_ints(kInt64, {1000}, large));
  for (size_t k : {size_t{0}, size_t{3}, size_t{4}, size_t{998}, size_t{999}}) {
    std::vector<int64_t> other = large;
    other[k] ^= int64_t{1} << 63;
    EXPECT_NE(first, digest(Constant::from_ints(kInt64, {1000}, other))) << k;
  }
}

TEST(RefTensor, RoundsAndWraps) {
  RefTensor f = make_ref_tensor(kFloat32, {2});
  f.f = {0.1, 1e300};
  round_to_dtype(f);
  EXPECT_EQ(f.f[0], static_cast<double>(0.1f));
  EXPECT_TRUE(std::isinf(f.f[1]));
  RefTensor i = make_ref_tensor(kInt8, {2});
  i.i = {200, -129};
  round_to_dtype(i);
  EXPECT_EQ(i.i, (std::vector<int64_t>{-56, 127}));
  EXPECT_EQ(to_constant(i).ints(), i.i);
  EXPECT_EQ(to_ref_tensor(to_constant(i)).i, i.i);
}

}  // namespace
}  // namespace tensmith::graph
