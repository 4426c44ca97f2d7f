// Loop nests that become intrinsics.
#include <gtest/gtest.h>

#include "schedule/intrinsics.h"
#include "tests/unit/schedule/check_schedule.h"

namespace tensmith {
namespace {

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::vector<std::string> steps(int lanes, const std::string& layout, const std::string& intrinsic,
                               const std::string& tail = "peel") {
  return {"split stage=C loop=i1 factor=" + std::to_string(lanes) + " outer=jo inner=ji tail=" + tail,
          "split stage=C loop=r0 factor=4 outer=ko inner=ki tail=" + tail, "reorder stage=C loops=i0,jo,ko,ji,ki",
          "transform_layout stage=B layout=" + layout, "tensorize stage=C loop=ji intrinsic=" + intrinsic};
}

TEST(TensorizeTest, DotOfBytes) {
  for (const int lanes : {1, 4, 8, 16})
    for (const char* tail : {"peel", "guard"}) {
      SCOPED_TRACE(testing::Message() << lanes << " lanes, tail " << tail);
      const std::string n = std::to_string(lanes);
      const std::string packed = "1/" + n + ",0/4,1%" + n + ",0%4";
      // Also where neither lanes nor bytes divide the sizes.
      for (const char* name : {"int8_dot", "int8_product"})
        expect_correct(sample_workload(name), steps(lanes, packed, "dot_u8s8_i32", tail));
      // Not packed: the same values, gathered.
      expect_correct(sample_workload("int8_product"), steps(lanes, "0,1", "dot_u8s8_i32", tail));
      expect_correct(sample_workload("bytes"), steps(lanes, "0,1", "dot_s8s8_i32", tail));
    }
}

TEST(TensorizeTest, StartsFromZeroWhereNothingIsReducedOutside) {
  for (const int64_t columns : {3, 8, 70}) {
    const Tensor a = placeholder("A", {2, 4}, kUInt8), b = placeholder("B", {columns, 4}, kInt8);
    const Tensor c = sum("C", {2, columns}, {4}, [&](const Indices& i, const Indices& k) {
      return cast(kInt32, a(i[0], k[0])) * cast(kInt32, b(i[1], k[0]));
    });
    const SizedWorkload bytes{make_workload("bytes", {a, b}, {c}), {}};
    const std::string tensorize = "tensorize stage=C loop=ji intrinsic=dot_u8s8_i32";
    expect_correct(bytes, {"split stage=C loop=i1 factor=8 outer=jo inner=ji", tensorize});
    // Where the start values were to be stored inside, too.
    expect_correct(
        bytes, {"split stage=C loop=i1 factor=8 outer=jo inner=ji", "decompose_reduction stage=C loop=r0", tensorize});
  }
}

TEST(TensorizeTest, PackedWeightsAreOneVector) {
  const Schedule schedule =
      make_schedule(sample_workload("int8_dot").workload, steps(8, "1/8,0/4,1%8,0%4", "dot_u8s8_i32"));
  const std::string text = lowered_text(schedule);
  EXPECT_EQ(count_of(text, "dot_accumulate("), 1) << text;
  // One contiguous load of 32 bytes: no lane is computed by division.
  EXPECT_EQ(count_of(text, "/ "), 0) << text;
}

TEST(TensorizeTest, InARegisterTile) {
  expect_correct(
      sample_workload("int8_product"),
      {"cache_write stage=C name=acc", "transform_layout stage=B layout=1/8,0/4,1%8,0%4",
       "split stage=C loop=i0 factor=2 outer=io inner=ii", "split stage=C loop=i1 factor=16 outer=jo inner=ji",
       "reorder stage=C loops=io,jo,ii,ji", "compute_at stage=acc consumer=C at=jo",
       "tile stage=acc rows=i0 columns=i1 lanes=8", "split stage=acc loop=r0 factor=4 outer=ko inner=ki",
       "reorder stage=acc loops=ko,i0,i1.v,i1.l,ki", "tensorize stage=acc loop=i1.l intrinsic=dot_u8s8_i32",
       "unroll stage=C loop=ii", "split stage=C loop=ji factor=8 outer=jv inner=jl", "unroll stage=C loop=jv",
       "vectorize stage=C loop=jl"});
}

TEST(TensorizeTest, KeepsOtherStagesOutside) {
  const SizedWorkload bytes = sample_workload("int8_dot");
  std::vector<std::string> list = steps(8, "1/8,0/4,1%8,0%4", "dot_u8s8_i32");
  for (const char* loop : {"ji", "ki"}) {
    // One way round and the other.
    Schedule schedule = make_schedule(bytes.workload, list);
    const Result<void> inside =
        schedule.try_apply(parse_step(std::string("read_at stage=C loop=") + loop + " producer=A name=Ac").value());
    ASSERT_FALSE(inside.ok());
    EXPECT_EQ(inside.failure().id, "attach-illegal");
    std::vector<std::string> before(list.begin(), list.end() - 1);
    before.push_back(std::string("read_at stage=C loop=") + loop + " producer=A name=Ac");
    schedule = make_schedule(bytes.workload, before);
    const Result<void> around = schedule.try_apply(parse_step(list.back()).value());
    ASSERT_FALSE(around.ok());
  }
  list.push_back("read_at stage=C loop=ko producer=A name=Ac");
  expect_correct(bytes, list);
}

TEST(TensorizeTest, RefusesWhatDoesNotMatch) {
  const auto why = [](const SizedWorkload& sized, std::vector<std::string> list) {
    Schedule schedule = make_schedule(sized.workload, {list.begin(), list.end() - 1});
    const Result<void> ok = schedule.try_apply(parse_step(list.back()).value());
    return ok ? "legal" : ok.failure().id + " " + ok.failure().message;
  };
  const SizedWorkload bytes = sample_workload("int8_dot");
  const std::string rows = "1/8,0/4,1%8,0%4";
  EXPECT_EQ(why(bytes, steps(8, rows, "dot_u8s8_i32")), "legal");
  // Signs differ: a wrong declaration is no match.
  EXPECT_NE(why(bytes, steps(8, rows, "dot_s8s8_i32")).find("tensorize-mismatch"), std::string::npos);
  EXPECT_NE(why(sample_workload("dense"), steps(8, rows, "dot_u8s8_i32")).find("expected results of type i32, got f32"),
            std::string::npos);
  auto wrong = steps(8, rows, "dot_u8s8_i32");
  wrong[1] = "split stage=C loop=r0 factor=5 outer=ko inner=ki";
  EXPECT_NE(why(bytes, wrong).find("expected 4 iterations of ki"), std::string::npos) << why(bytes, wrong);
  wrong = steps(8, rows, "dot_u8s8_i32");
  wrong[2] = "reorder stage=C loops=ko,ki,i0,jo,ji";
  wrong[4] = "tensorize stage=C loop=jo intrinsic=dot_u8s8_i32";
  EXPECT_NE(why(bytes, wrong).find("one reduction loop"), std::string::npos) << why(bytes, wrong);
  const Tensor a = placeholder("A", {4, 8}, kUInt8), b = placeholder("B", {8, 8}, kInt8);
  const Tensor c = sum("C", {4, 8}, {8}, [&](const Indices& i, const Indices& r) {
    return cast(kInt32, a(i[0], r[0])) + cast(kInt32, b(r[0], i[1]));
  });
  EXPECT_NE(why({make_workload("sums", {a, b}, {c}), {}}, steps(8, rows, "dot_u8s8_i32")).find("expected i32(a["),
            std::string::npos);
}

}  // namespace
}  // namespace tensmith
