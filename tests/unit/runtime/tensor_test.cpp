// Tensors, fills and .npy files, hostile ones included.
#include "runtime/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/base/files.h"
#include "runtime/base/rng.h"
#include "runtime/npy.h"

namespace tensmith {
namespace {

const DType kAll[] = {kBool,   kInt8,   kInt16,   kInt32,   kInt64,   kUInt8,   kUInt16,
                      kUInt32, kUInt64, kFloat16, kFloat32, kFloat64, kBFloat16};

std::string bytes_of(const HostTensor& t) {
  return std::string(static_cast<const char*>(t.raw()), static_cast<size_t>(t.bytes()));
}

TEST(HostTensor, AlignedAndZero) {
  for (int64_t n : {0, 1, 3, 1000, 3000000}) {
    HostTensor t({n}, kFloat32);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t.raw()) % kBufferAlignment, 0u);
    EXPECT_EQ(t.size(), n);
    for (float x : t.data<float>()) ASSERT_EQ(x, 0);
  }
  EXPECT_EQ(HostTensor({}, kInt64).size(), 1);
}

TEST(HostTensor, ImpossibleSizesAreErrors) {
  EXPECT_THROW(HostTensor({-1}, kFloat32), UserError);
  EXPECT_THROW(HostTensor({kMaxDim, kMaxDim}, kFloat32), UserError);
  EXPECT_THROW(HostTensor({kMaxDim, 1 << 20}, kFloat32), DeviceError);  // 2^62 bytes: a legal count that no machine has
}

TEST(HostTensor, SetSaturatesAndTruncates) {
  HostTensor i8({4}, kInt8), u64({2}, kUInt64), b({3}, kBool), i64({2}, kInt64);
  i8.set(0, 1000);
  i8.set(1, -1000);
  i8.set(2, -1.9);
  i8.set(3, std::nan(""));
  EXPECT_EQ(i8.get(0), 127);
  EXPECT_EQ(i8.get(1), -128);
  EXPECT_EQ(i8.get(2), -1);
  EXPECT_EQ(i8.get(3), 0);
  u64.set(0, 1e30);
  EXPECT_EQ(u64.data<uint64_t>()[0], UINT64_MAX);
  u64.set(1, -5);
  EXPECT_EQ(u64.get(1), 0);
  b.set(0, 0.5);
  b.set(1, std::nan(""));
  EXPECT_EQ(b.get(0), 1);
  EXPECT_EQ(b.get(1), 1);
  i64.set_int(0, INT64_MIN + 1);
  EXPECT_EQ(i64.get_int(0), INT64_MIN + 1) << "exact beyond 53 bits";
  i64.set(1, 1e19);
  EXPECT_EQ(i64.get_int(1), INT64_MAX);
}

TEST(HostTensor, CopyFromStridedDl) {
  float data[] = {0, 1, 2, 3, 4, 5};
  int64_t shape[] = {2, 2}, strides[] = {1, 2};
  tensmith_tensor t = {};
  t.data = data;
  t.device_type = TENSMITH_DEVICE_CPU;
  t.ndim = 2;
  t.dtype_code = TENSMITH_CODE_FLOAT;
  t.dtype_bits = 32;
  t.dtype_lanes = 1;
  t.shape = shape;
  t.strides = strides;
  t.byte_offset = 4;
  HostTensor copy = copy_from_dl(t).value();
  EXPECT_EQ(copy.get(0), 1);
  EXPECT_EQ(copy.get(1), 3);
  EXPECT_EQ(copy.get(2), 2);
  EXPECT_EQ(copy.get(3), 4);
  EXPECT_NE(check_dense_dl(t, shape, kFloat32), "");
  int64_t dense[] = {2, 1};
  t.strides = dense;
  EXPECT_EQ(check_dense_dl(t, shape, kFloat32), "");
  EXPECT_NE(check_dense_dl(t, shape, kInt32).find("expected dtype i32, got f32"), std::string::npos);
  t.dtype_code = 77;
  EXPECT_EQ(copy_from_dl(t).failure().id, "bad-tensor");
  t.dtype_code = TENSMITH_CODE_FLOAT;
  t.ndim = -1;
  EXPECT_EQ(copy_from_dl(t).failure().id, "bad-tensor");
  t.ndim = 2;
  shape[0] = shape[1] = kMaxDim;
  EXPECT_EQ(copy_from_dl(t).failure().id, "shape-overflow");
}

TEST(Fill, SameSeedSameData) {
  HostTensor a({1000}, kFloat32), b({1000}, kFloat32), c({1000}, kFloat32);
  ASSERT_TRUE(fill(a, "random:3", "x").ok());
  ASSERT_TRUE(fill(b, "random:3", "x").ok());
  ASSERT_TRUE(fill(c, "random:3", "y").ok());
  EXPECT_EQ(bytes_of(a), bytes_of(b));
  EXPECT_NE(bytes_of(a), bytes_of(c));
}

TEST(Fill, RangesByType) {
  for (DType dtype : kAll) {
    HostTensor t({500}, dtype);
    ASSERT_TRUE(fill(t, "ones", "x").ok());
    EXPECT_EQ(t.get(499), 1) << to_string(dtype);
    ASSERT_TRUE(fill(t, "zeros", "x").ok());
    EXPECT_EQ(t.get(0), 0);
    ASSERT_TRUE(fill(t, "random:1", "x").ok());
    double low = 1e9, high = -1e9;
    for (int64_t i = 0; i < t.size(); ++i) low = std::min(low, t.get(i)), high = std::max(high, t.get(i));
    if (dtype.is_bool() || (dtype.is_integral() && dtype.bits >= 32)) {
      EXPECT_EQ(low, 0);
      EXPECT_EQ(high, 1);
    } else if (dtype.is_uint()) {
      EXPECT_GE(low, 0);
      EXPECT_LE(high, 255);
      EXPECT_GT(high, 200);
    } else {
      EXPECT_LT(low, -1);
      EXPECT_GT(high, 1);
    }
    if (!dtype.is_integral()) continue;
    ASSERT_TRUE(fill(t, "random:1:5:8", "x").ok());
    for (int64_t i = 0; i < t.size(); ++i) EXPECT_TRUE(t.get(i) >= 5 && t.get(i) <= 7);
  }
}

TEST(Fill, BadTexts) {
  HostTensor t({2}, kFloat32);
  for (const char* how :
       {"", "one", "random", "random:", "random:x", "random:1:2", "random:1:3:2", "random:1:nan:2", "random:1:2:3:4"})
    EXPECT_EQ(fill(t, how, "x").failure().id, "bad-fill") << how;
}

/// A file as NumPy writes it, from its parts.
std::string npy(const std::string& dict, const std::string& data, char version = 1) {
  std::string out("\x93NUMPY", 6);
  out += version;
  out += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) out += static_cast<char>(dict.size() >> (8 * i));
  return out + dict + data;
}

TEST(Npy, BytesAsNumPyWritesThem) {
  HostTensor t = HostTensor::from_values({2, 3}, kFloat32, std::vector<double>{0, 1, 2, 3, 4, 5});
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  header.resize(117, ' ');
  EXPECT_EQ(*npy_bytes(t), npy(header + "\n", bytes_of(t)));
  EXPECT_NE(npy_bytes(HostTensor({7}, kFloat32))->find("'shape': (7,), }"), std::string::npos);
  EXPECT_NE(npy_bytes(HostTensor({}, kBool))->find("'descr': '|b1', 'fortran_order': False, 'shape': (), }"),
            std::string::npos);
}

TEST(Npy, RoundTripOfEveryType) {
  TempDir dir;
  for (DType dtype : kAll)
    for (std::vector<int64_t> shape : {std::vector<int64_t>{}, {5}, {2, 0, 3}, {3, 4, 5}}) {
      HostTensor t(shape, dtype);
      ASSERT_TRUE(fill(t, "random:9", "x").ok());
      ASSERT_TRUE(write_npy(dir.file("t.npy"), t).ok());
      HostTensor back = read_npy(dir.file("t.npy")).value();
      EXPECT_EQ(back.shape(), shape);
      EXPECT_EQ(back.dtype(), dtype);
      EXPECT_EQ(bytes_of(back), bytes_of(t));
    }
  EXPECT_EQ(npy_bytes(HostTensor({1}, kInt4)).failure().id, "bad-npy");
  EXPECT_EQ(*npy_bytes(HostTensor(std::vector<int64_t>(60, 1), kInt8)) == "", false);
}

TEST(Npy, FortranOrderAndByteOrder) {
  const int16_t column_major[] = {1, 4, 2, 5, 3, 6};
  const std::string data(reinterpret_cast<const char*>(column_major), sizeof column_major);
  HostTensor t = parse_npy(npy("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }", data), "f").value();
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(t.get(i), static_cast<double>(i + 1));
  HostTensor big =
      parse_npy(npy("{'descr': '>i4', 'fortran_order': False, 'shape': (1,)}", std::string("\0\0\1\2", 4), 2), "f")
          .value();
  EXPECT_EQ(big.get(0), 258);
  HostTensor v3 =
      parse_npy(npy("{\"shape\": (2L,), \"descr\": '|u1', 'fortran_order': False,}\n", "ab", 3), "f").value();
  EXPECT_EQ(v3.get(1), 'b');
  HostTensor boolean =
      parse_npy(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", std::string("\0\7", 2)), "f").value();
  EXPECT_EQ(boolean.data<uint8_t>()[1], 1);
}

TEST(Npy, HostileFilesGiveErrors) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  const std::pair<std::string, const char*> rows[] = {
      {"", "bad-npy"},
      {"\x93NUMP", "bad-npy"},
      {"PK\3\4 an archive of several arrays", "bad-npy"},
      {npy(good, "1234567"), "bad-npy"},
      {npy(good, "123456789"), "bad-npy"},
      {npy(good, "12345678", 9), "bad-npy"},
      {npy(good, "12345678").substr(0, 30), "bad-npy"},
      {npy("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", "12345678"), "bad-npy"},
      {npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", "12345678"), "bad-npy"},
      {npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", "12345678"), "bad-npy"},
      {npy("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }", "12345678"), "bad-npy"},
      {npy("{'descr': '<f4', 'shape': (2,), }", "12345678"), "bad-npy"},
      {npy("{'descr': '<f4', 'descr': '<f4', 'shape': (2,), }", "12345678"), "bad-npy"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", "12345678"), "bad-npy"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2 2), }", "12345678"), "bad-npy"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,", "12345678"), "bad-npy"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} import os", "12345678"), "bad-npy"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", ""), "bad-npy"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,)}", ""), "bad-shape"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 1099511627776)}", ""), "shape-overflow"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 1048576)}", ""), "bad-npy"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::string(300, '1') + ")}", ""), "bad-npy"},
  };
  int row = 0;
  for (const auto& [bytes, id] : rows) {
    Result<HostTensor> t = parse_npy(bytes, "in.npy");
    ASSERT_FALSE(t.ok()) << row;
    EXPECT_EQ(t.failure().id, id) << row << ": " << t.failure().message;
    EXPECT_EQ(t.failure().message.find("in.npy: "), 0u);
    ++row;
  }
  // A shape of 100 ones each: too many dimensions.
  std::string many = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (int i = 0; i < 100; ++i) many += "1, ";
  EXPECT_EQ(parse_npy(npy(many + ")}", "1234"), "f").failure().id, "bad-npy");
  // A header length beyond the file.
  std::string cut = npy(good, "12345678", 2);
  std::memset(cut.data() + 8, 0xff, 4);
  EXPECT_EQ(parse_npy(cut, "f").failure().id, "bad-npy");
  EXPECT_EQ(read_npy("/dev/zero", 1 << 16).failure().id, "file-too-large");
}

TEST(Npy, RandomDamageNeverCrashes) {
  const std::string whole = *npy_bytes(HostTensor::from_values({2, 2}, kInt32, std::vector<double>{1, 2, 3, 4}));
  Rng rng(5);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = whole;
    for (uint64_t n = 1 + rng.below(4); n-- > 0;) bytes[rng.below(90)] = static_cast<char>(rng.next());
    if (rng.chance(0.2)) bytes.resize(rng.below(bytes.size()));
    refused += !parse_npy(bytes, "f").ok();
  }
  EXPECT_GT(refused, 2000);
}

}  // namespace
}  // namespace tensmith
