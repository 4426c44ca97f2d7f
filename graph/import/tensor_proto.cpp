#include "graph/import/tensor_proto.h"

#include <charconv>

#include "graph/element.h"
#include "runtime/base/shape.h"

namespace tensmith::graph {

namespace {

/// A sparse tensor of a few bytes may state any size; this is the largest that is made dense.
constexpr int64_t kMaxSparseBytes = int64_t{1} << 30;

Failure bad(const std::string& what, const std::string& text) { return {"bad-initializer", what + ": " + text}; }

/// Bytes in a file: 4-bit types lie two to a byte.
int64_t stored_bytes(DType dtype, int64_t count) { return dtype.bits == 4 ? (count + 1) / 2 : count * dtype.bytes(); }

/// One 4-bit value to a byte; the first of a pair stands in the low half.
Constant unpack_nibbles(DType dtype, const std::vector<int64_t>& shape, const unsigned char* packed) {
  Constant result = Constant::allocate(dtype, shape);
  auto* out = static_cast<uint8_t*>(result.mutable_data());
  const int64_t count = result.num_elements();
  for (int64_t k = 0; k < count; ++k) {
    const int nibble = packed[k / 2] >> (k % 2 * 4) & 15;
    out[k] = static_cast<uint8_t>(dtype.is_int() && nibble > 7 ? nibble - 16 : nibble);
  }
  return result;
}

template <typename Stored, typename Field>
Constant copy_field(DType dtype, const std::vector<int64_t>& shape, const Field& field) {
  Constant result = Constant::allocate(dtype, shape);
  auto* out = static_cast<Stored*>(result.mutable_data());
  for (int k = 0; k < field.size(); ++k) out[k] = static_cast<Stored>(field.Get(k));
  return result;
}

/// What a tensor holds in its typed fields, and how many of them are used.
struct FieldSizes {
  int f, i32, i64, f64, u64, text;
  int used() const { return (f > 0) + (i32 > 0) + (i64 > 0) + (f64 > 0) + (u64 > 0) + (text > 0); }
};

FieldSizes field_sizes(const onnx::TensorProto& p) {
  return {p.float_data_size(),  p.int32_data_size(),  p.int64_data_size(),
          p.double_data_size(), p.uint64_data_size(), p.string_data_size()};
}

Result<Constant> read_fields(onnx::TensorProto& proto, DType dtype, const std::vector<int64_t>& shape, int64_t count,
                             const std::string& what) {
  using Code = DType::Code;
  const FieldSizes sizes = field_sizes(proto);
  if (sizes.used() > 1) return bad(what, "expected one field of data, got " + std::to_string(sizes.used()));
  const auto check = [&](int size, int64_t expected, const char* field) -> Result<void> {
    if (size == expected) return {};
    if (sizes.used() == 0)
      return bad(what, "expected " + std::to_string(count) + " elements of " + to_string(dtype) +
                           ", got a tensor without data");
    return bad(what, "expected " + std::to_string(expected) + " elements in " + field + " for " + to_string(dtype) +
                         ", got " + std::to_string(size));
  };
  if (dtype == kFloat32) {
    if (auto ok = check(sizes.f, count, "float_data"); !ok) return ok.failure();
    return copy_field<float>(dtype, shape, proto.float_data());
  }
  if (dtype == kFloat64) {
    if (auto ok = check(sizes.f64, count, "double_data"); !ok) return ok.failure();
    return copy_field<double>(dtype, shape, proto.double_data());
  }
  if (dtype == kInt64) {
    if (auto ok = check(sizes.i64, count, "int64_data"); !ok) return ok.failure();
    return copy_field<int64_t>(dtype, shape, proto.int64_data());
  }
  if (dtype == kUInt64 || dtype == kUInt32) {
    if (auto ok = check(sizes.u64, count, "uint64_data"); !ok) return ok.failure();
    return dtype == kUInt64 ? copy_field<uint64_t>(dtype, shape, proto.uint64_data())
                            : copy_field<uint32_t>(dtype, shape, proto.uint64_data());
  }
  if (auto ok = check(sizes.i32, dtype.bits == 4 ? stored_bytes(dtype, count) : count, "int32_data"); !ok)
    return ok.failure();
  const auto& field = proto.int32_data();
  if (dtype.bits == 4) {
    std::vector<unsigned char> packed(field.begin(), field.end());
    packed.push_back(0);  // keeps data() valid for an empty tensor
    return unpack_nibbles(dtype, shape, packed.data());
  }
  if (dtype.code == Code::kBool) {
    Constant result = Constant::allocate(dtype, shape);
    for (int k = 0; k < field.size(); ++k) static_cast<uint8_t*>(result.mutable_data())[k] = field.Get(k) != 0;
    return result;
  }
  switch (dtype.bits) {
    case 8: return copy_field<uint8_t>(dtype, shape, field);
    case 16: return copy_field<uint16_t>(dtype, shape, field);  // 16-bit floats stand there as bits
    default: return copy_field<int32_t>(dtype, shape, field);
  }
}

Result<ExternalBytes> external_bytes(const onnx::TensorProto& proto, const std::string& what, ExternalData& files) {
  std::string location;
  int64_t offset = 0, length = -1;
  for (const auto& entry : proto.external_data()) {
    const std::string& text = entry.value();
    if (entry.key() == "location") {
      location = text;
    } else if (entry.key() == "offset" || entry.key() == "length") {
      int64_t number = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error != std::errc() || end != text.data() + text.size() || number < 0)
        return bad(
            what, "external data: expected a number of bytes as " + entry.key() + ", got '" + text.substr(0, 40) + "'");
      (entry.key() == "offset" ? offset : length) = number;
    } else if (entry.key() != "checksum") {
      return bad(what, "external data: expected location, offset, length or checksum, got '" +
                           entry.key().substr(0, 40) + "'");
    }
  }
  auto bytes = files.read(location, offset, length);
  if (!bytes) return Failure{bytes.failure().id, what + ": " + bytes.failure().message};
  return bytes;
}

}  // namespace

Result<DType> onnx_dtype(int64_t data_type) {
  switch (data_type) {
    case 1: return kFloat32;
    case 2: return kUInt8;
    case 3: return kInt8;
    case 4: return kUInt16;
    case 5: return kInt16;
    case 6: return kInt32;
    case 7: return kInt64;
    case 9: return kBool;
    case 10: return kFloat16;
    case 11: return kFloat64;
    case 12: return kUInt32;
    case 13: return kUInt64;
    case 16: return kBFloat16;
    case 21: return kUInt4;
    case 22: return kInt4;
  }
  static constexpr const char* kOthers[] = {
      nullptr,     nullptr,      nullptr,      nullptr,        nullptr,          nullptr,      nullptr,
      nullptr,     "string",     nullptr,      nullptr,        nullptr,          nullptr,      nullptr,
      "complex64", "complex128", nullptr,      "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
      nullptr,     nullptr,      "float4e2m1", "float8e8m0",   "uint2",          "int2"};
  const bool known = data_type > 0 && data_type < static_cast<int64_t>(std::size(kOthers));
  return Failure{"unsupported-dtype",
                 "element type " + (known ? std::string(kOthers[data_type]) : "number " + std::to_string(data_type)) +
                     ": expected a number or bool of 4 to 64 bits"};
}

Result<Constant> read_tensor(onnx::TensorProto& proto, const std::string& what, ExternalData& files,
                             const ImportLimits& limits, const LargeData& large) {
  if (proto.has_segment()) return bad(what, "expected a whole tensor, got a segment");
  const auto dtype = onnx_dtype(proto.data_type());
  if (!dtype)
    return Failure{proto.data_type() == 0 ? "bad-initializer" : dtype.failure().id,
                   what + ": " + dtype.failure().message};
  const std::vector<int64_t> shape(proto.dims().begin(), proto.dims().end());
  const auto count = element_count(shape);
  const auto bytes = byte_count(shape, *dtype);
  if (!count || !bytes) return bad(what, (!count ? count : bytes).failure().message);
  if (*bytes > limits.tensor_bytes)
    return Failure{"too-large", what + ": expected at most " + std::to_string(limits.tensor_bytes) + " bytes, got " +
                                    std::to_string(*bytes)};
  const int64_t stored = stored_bytes(*dtype, *count);
  const bool external = proto.data_location() == onnx::TensorProto::EXTERNAL;
  if ((external || proto.has_raw_data()) && field_sizes(proto).used() > 0)
    return bad(what, "expected data in one place, got raw data and a typed field");
  if (external && proto.has_raw_data()) return bad(what, "expected data in one place, got raw data and external data");
  if (!external && !proto.has_raw_data()) return read_fields(proto, *dtype, shape, *count, what);

  ExternalBytes data;
  if (external) {
    auto found = external_bytes(proto, what, files);
    if (!found) return found.failure();
    data = *found;
  } else if (const FileRange* place = large.find(proto)) {
    data.size = place->size;
    if (data.size == stored) {
      auto content = large.read(*place);
      if (!content) return content.failure();
      data = {*content, static_cast<const char*>(content->get()), data.size};
    }
  } else {
    auto owner = std::make_shared<const std::string>(std::move(*proto.mutable_raw_data()));
    data = {owner, owner->data(), static_cast<int64_t>(owner->size())};
  }
  if (data.size != stored) {
    const char* hint = data.size == 0 ? "; the file holds no weights" : "";
    return bad(what, "expected " + std::to_string(stored) + " bytes for " + to_string(static_type(*dtype, shape)) +
                         ", got " + std::to_string(data.size) + hint);
  }
  if (*count == 0) return Constant::allocate(*dtype, shape);
  if (dtype->bits == 4) return unpack_nibbles(*dtype, shape, reinterpret_cast<const unsigned char*>(data.data));
  if (reinterpret_cast<uintptr_t>(data.data) % static_cast<size_t>(dtype->bytes()) == 0)
    return Constant(*dtype, shape, data.owner, data.data);
  Constant copy = Constant::allocate(*dtype, shape);  // data at an odd place of a file: readers may rely on alignment
  std::memcpy(copy.mutable_data(), data.data, static_cast<size_t>(data.size));
  return copy;
}

Result<Constant> read_sparse_tensor(onnx::SparseTensorProto& proto, const std::string& what, ExternalData& files,
                                    const ImportLimits& limits) {
  auto values = read_tensor(*proto.mutable_values(), what + " (values)", files, limits);
  if (!values) return values;
  auto indices = read_tensor(*proto.mutable_indices(), what + " (indices)", files, limits);
  if (!indices) return indices;
  const std::vector<int64_t> shape(proto.dims().begin(), proto.dims().end());
  const auto bytes = byte_count(shape, values->dtype());
  if (!bytes) return bad(what, bytes.failure().message);
  const int64_t limit = std::min(limits.tensor_bytes, kMaxSparseBytes);
  if (*bytes > limit)
    return Failure{"too-large",
                   what + ": expected at most " + std::to_string(limit) + " bytes, got " + std::to_string(*bytes)};
  const int64_t count = values->num_elements(), total = *element_count(shape);
  const auto rank = static_cast<int64_t>(shape.size());
  const bool linear = indices->shape() == std::vector<int64_t>{count};
  if (indices->dtype() != kInt64 || (!linear && indices->shape() != std::vector<int64_t>{count, rank}))
    return bad(what, "expected i64 indices of shape [" + std::to_string(count) + "] or [" + std::to_string(count) +
                         ", " + std::to_string(rank) + "], got " +
                         to_string(static_type(indices->dtype(), indices->shape())));
  const std::vector<int64_t> places = indices->ints();
  Constant dense = Constant::allocate(values->dtype(), shape);
  const auto width = static_cast<size_t>(values->dtype().bytes());
  for (int64_t k = 0; k < count; ++k) {
    int64_t flat = linear ? places[k] : 0;
    for (int64_t d = 0; !linear && d < rank; ++d) {
      const int64_t index = places[k * rank + d];
      if (index < 0 || index >= shape[d])
        return bad(what, "index " + std::to_string(index) + " is out of range in dim " + std::to_string(d));
      flat = flat * shape[d] + index;
    }
    if (flat < 0 || flat >= total) return bad(what, "index " + std::to_string(flat) + " is out of range");
    std::memcpy(static_cast<char*>(dense.mutable_data()) + static_cast<size_t>(flat) * width,
                static_cast<const char*>(values->data()) + static_cast<size_t>(k) * width, width);
  }
  return dense;
}

}  // namespace tensmith::graph
