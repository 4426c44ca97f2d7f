#include "runtime/npy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>

#include "runtime/base/files.h"

namespace tensmith {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic("\x93NUMPY", 6);

struct Header {
  DType dtype;
  bool swap = false;
  bool fortran = false;
  std::vector<int64_t> shape;
};

/// Reads the header's dictionary: a Python literal with exactly the keys descr, fortran_order and shape.
class DictReader {
 public:
  explicit DictReader(std::string_view text) : text_(text) {}

  /// Empty on success, else what is wrong.
  std::string read(Header& header) {
    bool have_descr = false, have_order = false, have_shape = false;
    if (!take('{')) return "expected a dictionary";
    while (!take('}')) {
      std::optional<std::string_view> key = quoted();
      if (!key || !take(':')) return "expected 'key': value";
      std::string error;
      if (*key == "descr" && !have_descr) {
        have_descr = true;
        error = read_descr(header);
      } else if (*key == "fortran_order" && !have_order) {
        have_order = true;
        header.fortran = take_word("True");
        if (!header.fortran && !take_word("False")) error = "expected fortran_order True or False";
      } else if (*key == "shape" && !have_shape) {
        have_shape = true;
        error = read_shape(header);
      } else {
        error = "unexpected or repeated key '" + std::string(key->substr(0, 40)) + "'";
      }
      if (!error.empty()) return error;
      if (!take(',') && !peek('}')) return "expected ',' or '}'";
    }
    skip();
    if (!text_.empty()) return "unexpected text behind the dictionary";
    return have_descr && have_order && have_shape ? "" : "expected the keys descr, fortran_order and shape";
  }

 private:
  void skip() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n' || text_[0] == '\t')) text_.remove_prefix(1);
  }
  bool peek(char c) {
    skip();
    return !text_.empty() && text_[0] == c;
  }
  bool take(char c) {
    if (!peek(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool take_word(std::string_view word) {
    skip();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  std::optional<std::string_view> quoted() {
    skip();
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) return std::nullopt;
    const size_t end = text_.find(text_[0], 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string_view inside = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return inside;
  }

  std::string read_descr(Header& header) {
    std::optional<std::string_view> descr = quoted();
    if (!descr) return "expected a simple dtype, got a structured one";
    std::string_view d = *descr;
    if (!d.empty() && (d[0] == '<' || d[0] == '>' || d[0] == '|' || d[0] == '=')) {
      header.swap = d[0] == '>';
      d.remove_prefix(1);
    }
    static constexpr std::pair<std::string_view, DType> kTypes[] = {
        {"b1", kBool},    {"i1", kInt8},    {"i2", kInt16},    {"i4", kInt32},  {"i8", kInt64},
        {"u1", kUInt8},   {"u2", kUInt16},  {"u4", kUInt32},   {"u8", kUInt64}, {"f2", kFloat16},
        {"f4", kFloat32}, {"f8", kFloat64}, {"V2", kBFloat16},
    };
    for (const auto& [name, type] : kTypes)
      if (d == name) {
        header.dtype = type;
        return "";
      }
    return "expected a dtype of bool, int, uint or float, got '" + std::string(descr->substr(0, 40)) + "'";
  }

  std::string read_shape(Header& header) {
    if (!take('(')) return "expected a shape";
    while (!take(')')) {
      skip();
      int64_t dim = 0;
      auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), dim);
      if (error != std::errc() || dim < 0) return "expected dimensions from 0 to 2^40";
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      if (!text_.empty() && text_[0] == 'L') text_.remove_prefix(1);  // Python 2 wrote long integers so
      header.shape.push_back(dim);
      if (header.shape.size() > static_cast<size_t>(kMaxRank)) return "expected at most 64 dimensions";
      if (!take(',') && !peek(')')) return "expected ',' or ')'";
    }
    return "";
  }

  std::string_view text_;
};

void swap_bytes(char* data, int64_t count, int64_t width) {
  for (int64_t i = 0; i < count; ++i, data += width) std::reverse(data, data + width);
}

/// Fortran order to row-major.
HostTensor transpose_from_fortran(const char* from, const std::vector<int64_t>& shape, DType dtype) {
  HostTensor out(shape, dtype);
  const size_t width = static_cast<size_t>(dtype.bytes());
  std::vector<int64_t> index(shape.size(), 0), stride(shape.size(), 1);
  for (size_t d = 1; d < shape.size(); ++d) stride[d] = stride[d - 1] * shape[d - 1];
  char* to = static_cast<char*>(out.raw());
  int64_t offset = 0;
  for (int64_t n = 0; n < out.size(); ++n, to += width) {
    std::memcpy(to, from + static_cast<size_t>(offset) * width, width);
    for (size_t d = shape.size(); d-- > 0;) {
      offset += stride[d];
      if (++index[d] < shape[d]) break;
      offset -= stride[d] * shape[d];
      index[d] = 0;
    }
  }
  return out;
}

std::string descr_of(DType dtype) {
  if (dtype == kBFloat16) return "<V2";
  if (!dtype.is_scalar() || dtype.bits < 8 || dtype.is_handle()) return "";
  const char letter = dtype.is_bool() ? 'b' : dtype.is_int() ? 'i' : dtype.is_uint() ? 'u' : 'f';
  return std::string(dtype.bytes() == 1 ? "|" : "<") + letter + std::to_string(dtype.bytes());
}

}  // namespace

Result<HostTensor> parse_npy(std::string_view bytes, const std::string& where) {
  auto bad = [&](const std::string& text) { return Failure{"bad-npy", where + ": not a valid .npy file: " + text}; };
  if (!bytes.starts_with(kMagic) || bytes.size() < 10) return bad("expected the magic bytes of NumPy");
  const int version = static_cast<uint8_t>(bytes[6]);
  if (version < 1 || version > 3) return bad("expected format version 1, 2 or 3, got " + std::to_string(version));
  uint64_t length = 0;
  const size_t start = version == 1 ? 10 : 12;
  if (bytes.size() < start) return bad("it is cut off in the header");
  std::memcpy(&length, bytes.data() + 8, version == 1 ? 2 : 4);
  if (length > bytes.size() - start) return bad("it is cut off in the header");
  if (length > 1 << 16) return bad("expected a header of at most 64 KiB, got " + std::to_string(length) + " bytes");
  Header header;
  if (std::string error = DictReader(bytes.substr(start, length)).read(header); !error.empty()) return bad(error);
  Result<int64_t> expected = byte_count(header.shape, header.dtype);
  if (!expected) return Failure{expected.failure().id, where + ": " + expected.failure().message};
  const std::string_view data = bytes.substr(start + length);
  if (static_cast<uint64_t>(*expected) != data.size())
    return bad("expected " + std::to_string(*expected) + " bytes of data for shape " + shape_to_string(header.shape) +
               " of " + to_string(header.dtype) + ", got " + std::to_string(data.size()));
  HostTensor tensor;
  if (header.fortran && header.shape.size() > 1) {
    tensor = transpose_from_fortran(data.data(), header.shape, header.dtype);
  } else {
    tensor = HostTensor(header.shape, header.dtype);
    if (!data.empty()) std::memcpy(tensor.raw(), data.data(), data.size());
  }
  if (header.swap) swap_bytes(static_cast<char*>(tensor.raw()), tensor.size(), header.dtype.bytes());
  if (header.dtype.is_bool())  // generated code relies on 0 and 1
    for (uint8_t& value : tensor.data<uint8_t>()) value = value != 0;
  return tensor;
}

Result<HostTensor> read_npy(const std::string& path, int64_t limit) {
  Result<std::string> bytes = read_file(path, limit);
  if (!bytes) return bytes.failure();
  return parse_npy(*bytes, path);
}

Result<std::string> npy_bytes(const HostTensor& tensor) {
  const std::string descr = descr_of(tensor.dtype());
  if (descr.empty())
    return Failure{"bad-npy", "npy: NumPy has no dtype " + to_string(tensor.dtype()) + "; cast it first"};
  std::string shape;
  for (int64_t dim : tensor.shape()) shape += std::to_string(dim) + ", ";
  if (tensor.shape().size() > 1) shape.resize(shape.size() - 2);
  else if (tensor.shape().size() == 1) shape.pop_back();
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  const size_t prefix = header.size() + 1 + 10 + 64 > 0xffff ? 12 : 10;
  // Data starts at a multiple of 64 so that it may be mapped.
  header.resize((prefix + header.size() + 1 + 63) / 64 * 64 - prefix - 1, ' ');
  header += '\n';
  std::string out(kMagic);
  out += prefix == 12 ? '\2' : '\1';
  out += '\0';
  for (size_t i = 0; i < prefix - 8; ++i) out += static_cast<char>(header.size() >> (8 * i));
  out += header;
  out.append(static_cast<const char*>(tensor.raw()), static_cast<size_t>(tensor.bytes()));
  return out;
}

Result<void> write_npy(const std::string& path, const HostTensor& tensor) {
  Result<std::string> bytes = npy_bytes(tensor);
  if (!bytes) return bytes.failure();
  return write_file(path, *bytes);
}

}  // namespace tensmith
