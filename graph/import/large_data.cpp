#include "graph/import/large_data.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "graph/import/varint.h"
#include "onnx.pb.h"

namespace tensmith::graph {

namespace {

constexpr size_t kLarge = 16 << 10;
constexpr size_t kHugePage = size_t{2} << 20;

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

/// One field as it stands in a message.
struct Field {
  uint32_t number = 0, type = 0;
  const uint8_t *begin = nullptr, *payload = nullptr, *end = nullptr;
};

/// The field at `at`; nothing when it is damaged or of the kind "group".
std::optional<Field> read_field(const uint8_t* at, const uint8_t* end) {
  Field field;
  field.begin = at;
  const auto tag = read_varint(at, end);
  if (!tag || *tag >> 3 == 0 || *tag > UINT32_MAX) return std::nullopt;
  field.number = static_cast<uint32_t>(*tag >> 3);
  field.type = static_cast<uint32_t>(*tag & 7);
  uint64_t size = 0;
  if (field.type == kVarint) {
    if (!read_varint(at, end)) return std::nullopt;
  } else if (field.type == kBytes) {
    const auto length = read_varint(at, end);
    if (!length) return std::nullopt;
    size = *length;
  } else if (field.type == kFixed64) {
    size = 8;
  } else if (field.type == kFixed32) {
    size = 4;
  } else {
    return std::nullopt;
  }
  field.payload = at;
  if (size > static_cast<uint64_t>(end - at)) return std::nullopt;
  field.end = at + size;
  return field;
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}

void put_message(std::string& out, uint32_t number, const std::string& message) {
  put_varint(out, number << 3 | kBytes);
  put_varint(out, message.size());
  out += message;
}

class Slimmer {
 public:
  explicit Slimmer(const uint8_t* start) : start_(start) {}

  /// Copies a message field by field, its submessages of number `nested` by `rewrite`, which may refuse.
  template <typename Rewrite>
  bool copy(const uint8_t* at, const uint8_t* end, uint32_t nested, std::string& out, const Rewrite& rewrite) {
    while (at < end) {
      const auto field = read_field(at, end);
      if (!field) return false;
      if (field->number != nested) {
        out.append(reinterpret_cast<const char*>(field->begin), static_cast<size_t>(field->end - field->begin));
      } else {
        std::string message;
        if (field->type != kBytes || !rewrite(*field, message)) return false;
        put_message(out, nested, message);
      }
      at = field->end;
    }
    return true;
  }

  bool model(const uint8_t* at, const uint8_t* end, std::string& out) {
    using onnx::ModelProto, onnx::GraphProto;
    return copy(at, end, ModelProto::kGraphFieldNumber, out, [&](const Field& graph, std::string& slim_graph) {
      return copy(graph.payload, graph.end, GraphProto::kInitializerFieldNumber, slim_graph,
                  [&](const Field& tensor, std::string& slim) {
                    found_.emplace_back();
                    return this->tensor(tensor.payload, tensor.end, slim);
                  });
    });
  }

  bool any() const {
    return std::any_of(found_.begin(), found_.end(), [](const FileRange& range) { return range.size > 0; });
  }
  std::vector<FileRange> take() { return std::move(found_); }

 private:
  bool tensor(const uint8_t* at, const uint8_t* end, std::string& out) {
    int pieces = 0;
    return copy(at, end, onnx::TensorProto::kRawDataFieldNumber, out, [&](const Field& data, std::string& kept) {
      const auto size = static_cast<size_t>(data.end - data.payload);
      if (++pieces > 1) return false;  // the last one would count
      if (size < kLarge) kept.assign(reinterpret_cast<const char*>(data.payload), size);
      else found_.back() = {data.payload - start_, static_cast<int64_t>(size)};
      return true;
    });
  }

  const uint8_t* start_;
  std::vector<FileRange> found_;
};

/// Memory for weights: large ones begin at a huge page and end where they end, since the rest of a last huge page would
/// be memory for nothing.
std::shared_ptr<void> memory_for(size_t size) {
  if (size < kHugePage) {
    void* memory = std::aligned_alloc(64, (size + 63) / 64 * 64);
    if (!memory) throw std::bad_alloc();
    return {memory, std::free};
  }
  const size_t whole = size + kHugePage;
  void* mapped = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  const auto address = reinterpret_cast<uintptr_t>(mapped);
  const size_t before = (kHugePage - address % kHugePage) % kHugePage, page = 4096;
  const size_t used = (size + page - 1) / page * page;
  char* start = static_cast<char*>(mapped) + before;
  if (before > 0) munmap(mapped, before);
  if (whole > before + used) munmap(start + used, whole - before - used);
  madvise(start, used, MADV_HUGEPAGE);
  return {start, [used](void* p) { munmap(p, used); }};
}

}  // namespace

std::optional<SlimModel> without_large_data(const uint8_t* data, size_t size) {
  if (size < kLarge) return std::nullopt;
  Slimmer slimmer(data);
  SlimModel slim;
  if (!slimmer.model(data, data + size, slim.bytes) || !slimmer.any()) return std::nullopt;
  slim.data = slimmer.take();
  return slim;
}

LargeData::LargeData(int file, const SlimModel& slim, const onnx::ModelProto& model) : file_(file) {
  TS_CHECK(model.graph().initializer_size() == static_cast<int>(slim.data.size())) << slim.data.size();
  for (size_t k = 0; k < slim.data.size(); ++k)
    if (slim.data[k].size > 0) ranges_.emplace(&model.graph().initializer(static_cast<int>(k)), slim.data[k]);
}

const FileRange* LargeData::find(const onnx::TensorProto& tensor) const {
  const auto found = ranges_.find(&tensor);
  return found == ranges_.end() ? nullptr : &found->second;
}

Result<std::shared_ptr<const void>> LargeData::read(const FileRange& range) const {
  std::shared_ptr<void> memory = memory_for(static_cast<size_t>(range.size));
  for (int64_t done = 0; done < range.size;) {
    const ssize_t got = pread(file_, static_cast<char*>(memory.get()) + done, static_cast<size_t>(range.size - done),
                              range.offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return Failure{"cannot-read", "the model's file: cannot be read: " +
                                        std::string(got < 0 ? std::strerror(errno) : "it became shorter")};
    done += got;
  }
  return std::shared_ptr<const void>(std::move(memory));
}

}  // namespace tensmith::graph
