#include "graph/import/onnx_import.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "graph/import/graph_importer.h"
#include "graph/import/varint.h"

namespace tensmith::graph {

namespace {

constexpr int64_t kOldestIr = 3, kNewestIr = 13;

/// A model file in memory. Its large weights are not read through the mapping: pages that are touched there would count
/// as memory of this process, beside the copy that the compiler works on.
class MappedFile {
 public:
  MappedFile(const std::string& path, int64_t limit) {
    const int file = file_.number = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    TS_USER_CHECK(file >= 0, "cannot-read") << "model " << path << ": " << std::strerror(errno);
    struct stat info {};
    const bool regular = fstat(file, &info) == 0 && S_ISREG(info.st_mode);
    size_ = regular ? static_cast<size_t>(info.st_size) : 0;
    if (regular && info.st_size <= limit && size_ > 0) {
      data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
      if (data_ == MAP_FAILED) data_ = nullptr;
    }
    const int error = errno;
    TS_USER_CHECK(regular, "cannot-read") << "model " << path << ": expected a file, got a folder or device";
    TS_USER_CHECK(info.st_size <= limit, "file-too-large")
        << "model " << path << ": expected at most " << limit << " bytes, got " << info.st_size
        << "; store large weights as external data";
    TS_USER_CHECK(data_ || size_ == 0, "cannot-read") << "model " << path << ": " << std::strerror(error);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (data_) munmap(data_, size_);
  }
  const void* data() const { return data_; }
  size_t size() const { return size_; }
  int descriptor() const { return file_.number; }

 private:
  struct Descriptor {
    int number = -1;
    ~Descriptor() {
      if (number >= 0) close(number);
    }
  };

  Descriptor file_;
  void* data_ = nullptr;
  size_t size_ = 0;
};

/// Why bytes do not parse as a model. A file that starts as a model and whose last field is longer than the file was
/// cut off.
[[noreturn]] void refuse_bytes(const std::string& where, const void* data, size_t size) {
  const auto* at = static_cast<const uint8_t*>(data);
  const uint8_t* const end = at + size;
  const std::string_view text(static_cast<const char*>(data), std::min<size_t>(size, 64));
  TS_USER_CHECK(size > 0, "not-a-model") << where << ": expected an ONNX model, got an empty file";
  TS_USER_CHECK(!text.starts_with("version https://git-lfs"), "not-a-model")
      << where << ": expected an ONNX model, got a git-lfs pointer; run 'git lfs pull'";
  bool like_model = *at == 0x08;  // ir_version comes first in every model
  while (like_model && at < end) {
    const std::optional<uint64_t> tag = read_varint(at, end);
    TS_USER_CHECK(tag.has_value(), "truncated-model")
        << where << ": expected a whole ONNX model, got one that is cut off; fetch it again";
    const uint64_t field = *tag >> 3;
    if (field == 0 || field > 30) break;
    if ((*tag & 7) == 0) {
      TS_USER_CHECK(read_varint(at, end).has_value(), "truncated-model")
          << where << ": expected a whole ONNX model, got one that is cut off; fetch it again";
    } else if ((*tag & 7) == 2) {
      const std::optional<uint64_t> length = read_varint(at, end);
      TS_USER_CHECK(length && *length <= static_cast<uint64_t>(end - at), "truncated-model")
          << where << ": expected a whole ONNX model, got one that is cut off after " << size
          << " bytes; fetch it again";
      at += *length;
    } else {
      break;
    }
  }
  TS_USER_CHECK(false, "not-a-model") << where << ": expected an ONNX model, got something else"
                                      << (like_model ? " or a damaged one" : "");
  std::abort();
}

ModelInfo model_info(const onnx::ModelProto& model) {
  ModelInfo info{model.graph().name(),
                 model.producer_name(),
                 model.producer_version(),
                 model.doc_string(),
                 model.ir_version(),
                 read_opsets(model.opset_import()),
                 {}};
  for (const auto& entry : model.metadata_props()) info.metadata[entry.key()] = entry.value();
  return info;
}

void check_model(const onnx::ModelProto& model, const std::string& where, ImportResult& result) {
  TS_USER_CHECK(model.has_graph(), "not-a-model") << where << ": expected an ONNX model with a graph, got none";
  TS_USER_CHECK(model.ir_version() >= kOldestIr, "bad-ir-version")
      << where << ": expected IR version " << kOldestIr << " or later, got " << model.ir_version()
      << "; convert the model";
  if (model.ir_version() > kNewestIr)
    result.warnings.push_back("IR version " + std::to_string(model.ir_version()) + " is newer than " +
                              std::to_string(kNewestIr) + "; new fields are ignored");
  const auto opset = result.info.opsets.find("");
  if (opset == result.info.opsets.end()) return;  // then no node may be of that domain
  TS_USER_CHECK(opset->second >= kOldestOpset && opset->second <= kNewestOpset, "bad-opset")
      << where << ": expected opset " << kOldestOpset << " to " << kNewestOpset << " of ai.onnx, got " << opset->second
      << "; convert the model";
}

void check_dims(const ImportOptions& options, const std::set<std::string>& used, const Graph& graph) {
  for (const auto& [name, size] : options.dims) {
    if (used.count(name)) continue;
    std::string open;
    for (const Var& dim : graph.dims) open += (open.empty() ? "" : ", ") + dim.name();
    for (const std::string& dim : used) open += (open.empty() ? "" : ", ") + dim;
    TS_USER_CHECK(false, "unknown-dim") << "dim " << name << ": expected the name of an open dim, one of "
                                        << (open.empty() ? "none (all sizes are fixed)" : open);
  }
}

/// `file`: where the bytes come from, or -1.
ImportResult import_bytes(const void* data, size_t size, int file, const std::string& where, const std::string& folder,
                          const ImportOptions& options) {
  onnx::ModelProto model;
  const bool fits = static_cast<int64_t>(size) <= options.limits.file_bytes && size <= INT32_MAX;
  TS_USER_CHECK(fits, "file-too-large") << where << ": expected at most " << options.limits.file_bytes << " bytes, got "
                                        << size;
  std::optional<SlimModel> slim;
  if (file >= 0) slim = without_large_data(static_cast<const uint8_t*>(data), size);
  if (slim && !model.ParseFromString(slim->bytes)) slim.reset();  // it shall judge the whole
  if (!slim && (size == 0 || !model.ParseFromArray(data, static_cast<int>(size)))) refuse_bytes(where, data, size);
  ImportResult result;
  result.info = model_info(model);
  check_model(model, where, result);
  const FlatModel flat = flatten(model, options.limits);
  ImportSession session{
      options, ExternalData(folder),         slim ? LargeData(file, *slim, model) : LargeData(), result, {}, {},
      {},      options.limits.unrolled_nodes};
  result.graph.name = model.graph().name();
  GraphImporter(session, flat.graph, result.graph, nullptr).run_main();
  check_dims(options, session.used_dims, result.graph);
  for (const auto& [name, value] : options.constants)
    TS_USER_CHECK(session.used_constants.count(name), "unknown-input")
        << "constant for input " << name << ": expected the name of an input of the model";
  if (result.ok()) GraphEditor(result.graph).erase_dead();
  return result;
}

}  // namespace

OpenSizes open_sizes(const Graph& graph) {
  OpenSizes open;
  const auto add = [](std::string& list, const char* between, const std::string& text) {
    list += (list.empty() ? "" : between) + text;
  };
  std::set<std::string> named;
  for (NodeId id : graph.inputs) {
    const TensorType& type = graph.type({id, 0});
    if (type.is_static()) continue;
    const std::string& name = graph.value_name({id, 0});
    add(open.inputs, ", ", name + ": " + to_string(type));
    add(open.arrays, " ", "--input " + name + "=@FILE.npy");
    for (const Expr& extent : type.shape)
      for (const Var& dim : graph.dims)
        if (extent.same_as(dim) && named.insert(dim.name()).second)
          add(open.dims, " ", "--dim " + dim.name() + "=SIZE");
  }
  return open;
}

bool ImportResult::needs_sizes() const {
  if (ok()) return false;
  for (const UnsupportedRow& row : unsupported.rows)
    if (!row.id.starts_with("dynamic-")) return false;
  return !open.inputs.empty();
}

Graph ImportResult::take() && {
  if (needs_sizes())
    throw UserError("symbolic-dims", "model: expected sizes that are known when compiling, got open ones of inputs " +
                                         open.inputs + "; give " + open.dims + ", or arrays: " + open.arrays);
  if (!ok())
    throw UnsupportedError("unsupported-model",
                           "model: expected only supported operators, got these:\n" + to_string(unsupported));
  return std::move(graph);
}

ImportResult import_onnx(const std::string& path, const ImportOptions& options) {
  const MappedFile file(path, std::min<int64_t>(options.limits.file_bytes, INT32_MAX));
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return import_bytes(file.data(), file.size(), file.descriptor(), "model " + path,
                      folder.empty() ? "." : folder.string(), options);
}

ImportResult import_onnx_bytes(const void* data, size_t size, const ImportOptions& options, const std::string& folder) {
  return import_bytes(data, size, -1, "model", folder, options);
}

}  // namespace tensmith::graph
