#include "runtime/export/model_image.h"

#include <bit>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>

#include "runtime/base/json.h"

namespace tensmith {
namespace {

static_assert(std::endian::native == std::endian::little && sizeof(void*) == 8,
              "images are laid out for 64-bit little-endian machines");

/// Grows an image. Tables are reserved first, then filled, so that pointers into them are known.
class Builder {
 public:
  template <typename T>
  uint64_t reserve(size_t count) {
    bytes_.resize((bytes_.size() + alignof(T) - 1) / alignof(T) * alignof(T));
    const uint64_t at = bytes_.size();
    bytes_.resize(at + count * sizeof(T));
    return at;
  }
  template <typename T>
  void put(uint64_t at, const T& value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  void point(uint64_t at, uint64_t target) { pointers_.push_back({at, target, ""}); }
  void point_symbol(uint64_t at, const std::string& symbol) {
    if (!symbol.empty()) pointers_.push_back({at, 0, symbol});
  }
  /// A pointer to a text; equal texts are stored once.
  void text(uint64_t at, const std::string& text) {
    auto [it, added] = texts_.try_emplace(text, bytes_.size());
    if (added) {
      bytes_ += text;
      bytes_ += '\0';
    }
    point(at, it->second);
  }
  ModelImage take() {
    bytes_.resize((bytes_.size() + 15) / 16 * 16);
    return {std::move(bytes_), std::move(pointers_)};
  }

 private:
  std::string bytes_;
  std::vector<ModelImage::Pointer> pointers_;
  std::map<std::string, uint64_t> texts_;
};

void put_ios(Builder& b, uint64_t at, const std::vector<ModelDescription::Io>& ios, int dims) {
  for (const ModelDescription::Io& io : ios) {
    for (int64_t entry : io.shape) TS_CHECK(entry >= 0 || -1 - entry < dims) << io.name << ": dimension " << entry;
    tensmith_io out = {};
    out.ndim = static_cast<int32_t>(io.shape.size());
    out.alignment = io.alignment > 0 ? io.alignment : static_cast<int32_t>(io.dtype.bytes());
    out.dtype_code = static_cast<uint8_t>(io.dtype.code);
    out.dtype_bits = io.dtype.bits;
    out.dtype_lanes = io.dtype.lanes;
    b.put(at, out);
    b.text(at + offsetof(tensmith_io, name), io.name);
    const uint64_t shape = b.reserve<int64_t>(io.shape.size());
    for (size_t i = 0; i < io.shape.size(); ++i) b.put(shape + 8 * i, io.shape[i]);
    b.point(at + offsetof(tensmith_io, shape), shape);
    at += sizeof out;
  }
}

void put_variant(Builder& b, uint64_t at, const ModelDescription::Variant& v) {
  TS_CHECK(!v.run_symbol.empty()) << v.target;
  TS_CHECK(v.weights_file.empty() || v.weights_sha256) << v.target << ": a file of weights needs its digest";
  TS_CHECK(v.weights_file.find('/') == std::string::npos) << v.weights_file;
  TS_CHECK(v.weights_bytes == 0 || v.weights_symbol.empty() != v.weights_file.empty())
      << v.target << ": weights either embedded or in a file";
  tensmith_variant out = {};
  out.weights_bytes = v.weights_bytes;
  out.arena_bytes = v.arena_bytes;
  out.arena_bytes_per_thread = v.arena_bytes_per_thread;
  out.num_requirements = static_cast<int32_t>(v.requirements.size());
  out.num_kernels = static_cast<int32_t>(v.kernels.size());
  b.put(at, out);
  b.text(at + offsetof(tensmith_variant, target), v.target);
  b.point_symbol(at + offsetof(tensmith_variant, run), v.run_symbol);
  b.point_symbol(at + offsetof(tensmith_variant, arena_size), v.arena_size_symbol);
  b.point_symbol(at + offsetof(tensmith_variant, weights), v.weights_symbol);
  if (!v.weights_file.empty()) b.text(at + offsetof(tensmith_variant, weights_file), v.weights_file);
  if (v.weights_sha256) {
    const uint64_t digest = b.reserve<uint8_t>(32);
    b.put(digest, *v.weights_sha256);
    b.point(at + offsetof(tensmith_variant, weights_sha256), digest);
  }
  if (!v.requirements.empty()) {
    const uint64_t table = b.reserve<tensmith_cpu_requirement>(v.requirements.size());
    b.point(at + offsetof(tensmith_variant, requirements), table);
    for (size_t i = 0; i < v.requirements.size(); ++i) {
      tensmith_cpu_requirement r = v.requirements[i];
      const uint64_t row = table + i * sizeof r;
      const std::string name = r.name;
      r.name = nullptr;
      b.put(row, r);
      b.text(row + offsetof(tensmith_cpu_requirement, name), name);
    }
  }
  if (!v.kernels.empty()) {
    const uint64_t table = b.reserve<tensmith_kernel>(v.kernels.size());
    b.point(at + offsetof(tensmith_variant, kernels), table);
    for (size_t i = 0; i < v.kernels.size(); ++i) {
      const uint64_t row = table + i * sizeof(tensmith_kernel);
      b.put(row, tensmith_kernel{nullptr, v.kernels[i].flops, v.kernels[i].bytes});
      b.text(row + offsetof(tensmith_kernel, name), v.kernels[i].name);
    }
  }
}

}  // namespace

ModelImage build_model_image(const ModelDescription& d) {
  TS_CHECK(!d.variants.empty()) << d.name;
  TS_CHECK((d.num_derived > 0) == !d.derive_symbol.empty())
      << d.name << ": derived dimensions and their function belong together";
  Builder b;
  const uint64_t model = b.reserve<tensmith_model>(1);
  TS_CHECK(model == 0);
  const int dims = static_cast<int>(d.symbols.size()) + d.num_derived;
  tensmith_model out = {};
  out.size = sizeof out;
  out.abi_version = TENSMITH_ABI_VERSION;
  out.num_inputs = static_cast<int32_t>(d.inputs.size());
  out.num_outputs = static_cast<int32_t>(d.outputs.size());
  out.num_symbols = static_cast<int32_t>(d.symbols.size());
  out.num_derived = d.num_derived;
  out.num_variants = static_cast<int32_t>(d.variants.size());
  out.num_messages = static_cast<int32_t>(d.messages.size());
  out.default_threads = d.default_threads;
  b.put(model, out);
  b.text(offsetof(tensmith_model, name), d.name);
  b.text(offsetof(tensmith_model, compiler), std::string("tensmith ") + tool_version());
  b.text(offsetof(tensmith_model, digest), d.digest);
  b.text(offsetof(tensmith_model, manifest), d.manifest);
  b.point_symbol(offsetof(tensmith_model, derive), d.derive_symbol);

  const uint64_t variants = b.reserve<tensmith_variant>(d.variants.size());
  const uint64_t inputs = b.reserve<tensmith_io>(d.inputs.size()), outputs = b.reserve<tensmith_io>(d.outputs.size());
  const uint64_t symbols = b.reserve<tensmith_symbol>(d.symbols.size()), messages = b.reserve<void*>(d.messages.size());
  b.point(offsetof(tensmith_model, variants), variants);
  b.point(offsetof(tensmith_model, inputs), inputs);
  b.point(offsetof(tensmith_model, outputs), outputs);
  b.point(offsetof(tensmith_model, symbols), symbols);
  b.point(offsetof(tensmith_model, messages), messages);
  for (size_t i = 0; i < d.variants.size(); ++i) put_variant(b, variants + i * sizeof(tensmith_variant), d.variants[i]);
  put_ios(b, inputs, d.inputs, dims);
  put_ios(b, outputs, d.outputs, dims);
  for (size_t i = 0; i < d.symbols.size(); ++i) {
    const uint64_t row = symbols + i * sizeof(tensmith_symbol);
    TS_CHECK(d.symbols[i].min >= 0 && d.symbols[i].min <= d.symbols[i].max) << d.symbols[i].name;
    b.put(row, tensmith_symbol{nullptr, d.symbols[i].min, d.symbols[i].max});
    b.text(row + offsetof(tensmith_symbol, name), d.symbols[i].name);
  }
  for (size_t i = 0; i < d.messages.size(); ++i) b.text(messages + 8 * i, d.messages[i]);
  return b.take();
}

void LoadedModel::Free::operator()(char* p) const { std::free(p); }

Result<LoadedModel> LoadedModel::load(const ModelDescription& description,
                                      const std::function<const void*(const std::string&)>& resolve) {
  const ModelImage image = build_model_image(description);
  LoadedModel loaded;
  loaded.bytes_.reset(static_cast<char*>(std::aligned_alloc(64, (image.bytes.size() + 63) / 64 * 64)));
  TS_CHECK(loaded.bytes_ != nullptr);
  char* base = loaded.bytes_.get();
  std::memcpy(base, image.bytes.data(), image.bytes.size());
  for (const ModelImage::Pointer& p : image.pointers) {
    const void* address = p.symbol.empty() ? base + p.target : resolve(p.symbol);
    if (!address) return Failure{"undefined-symbol", description.name + ": the program has no symbol " + p.symbol};
    std::memcpy(base + p.at, &address, sizeof address);
  }
  return loaded;
}

}  // namespace tensmith
