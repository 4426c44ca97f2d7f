#include "runtime/export/support_object.h"

#include <algorithm>
#include <vector>

#include "runtime/base/sha256.h"
#include "runtime/export/elf_rename.h"

// Made by embed.cmake from the compiled object and the headers.
extern "C" {
extern const unsigned char tensmith_blob_support_x86_64[];
extern const unsigned long tensmith_blob_support_x86_64_size;
extern const unsigned char tensmith_blob_support_aarch64[];
extern const unsigned long tensmith_blob_support_aarch64_size;
extern const unsigned char tensmith_blob_dl_tensor[];
extern const unsigned long tensmith_blob_dl_tensor_size;
extern const unsigned char tensmith_blob_context[];
extern const unsigned long tensmith_blob_context_size;
extern const unsigned char tensmith_blob_cpu_requirement[];
extern const unsigned long tensmith_blob_cpu_requirement_size;
extern const unsigned char tensmith_blob_abi[];
extern const unsigned long tensmith_blob_abi_size;
}

namespace tensmith {
namespace {

std::string_view view(const unsigned char* data, unsigned long size) {
  return {reinterpret_cast<const char*>(data), size};
}

struct Function {
  const char* before;  // result type
  const char* name;
  const char* parameters;
};
constexpr Function kFunctions[] = {
    {"const tensmith_api* ", "get_api", "uint32_t max_version"},
    {"int32_t ", "create", "const tensmith_options* options, tensmith_instance** instance"},
    {"void ", "destroy", "tensmith_instance* instance"},
    {"int32_t ", "run_buffers",
     "tensmith_instance* instance, const void* const* inputs, void* const* outputs, const int64_t* symbols"},
    {"int32_t ", "run_tensors",
     "tensmith_instance* instance, const tensmith_tensor* inputs, const tensmith_tensor* outputs"},
    {"int32_t ", "output_shape",
     "tensmith_instance* instance, const tensmith_tensor* inputs, int32_t output, int64_t* shape"},
    {"const char* ", "last_error", "const tensmith_instance* instance"},
    {"int64_t ", "workspace_size", "tensmith_instance* instance, const int64_t* symbols"},
    {"int32_t ", "set_workspace", "tensmith_instance* instance, void* memory, int64_t bytes"},
    {"int32_t ", "set_parallel_for",
     "tensmith_instance* instance, tensmith_parallel_for parallel_for, void* pool, int32_t num_threads"},
    {"int32_t ", "set_on_kernel",
     "tensmith_instance* instance, void (*on_kernel)(void* user, int32_t kernel, int32_t is_end), void* user"},
};

}  // namespace

Result<std::string_view> support_object(std::string_view arch) {
  const std::string_view object =
      arch == "x86_64"    ? view(tensmith_blob_support_x86_64, tensmith_blob_support_x86_64_size)
      : arch == "aarch64" ? view(tensmith_blob_support_aarch64, tensmith_blob_support_aarch64_size)
                          : std::string_view();
  if (object.size() > 1) return object;
  return Failure{"no-support-object",
                 "export for " + std::string(arch) +
                     ": this build of the tool has no support code for it; install gcc for that architecture "
                     "(aarch64-linux-gnu-gcc) and build the tool again"};
}

std::map<std::string, std::string> support_names(const std::string& prefix) {
  std::map<std::string, std::string> names = {{"tensmith_support_model", prefix + "model"}};
  for (const Function& f : kFunctions) names.emplace(std::string("tensmith_support_") + f.name, prefix + f.name);
  return names;
}

Result<std::string> support_object_for(std::string_view arch, const std::string& prefix) {
  Result<std::string_view> object = support_object(arch);
  if (!object) return object.failure();
  return rename_symbols(*object, support_names(prefix));
}

std::vector<std::string> exported_names(const std::string& prefix) {
  std::vector<std::string> names;
  for (const Function& f : kFunctions) names.push_back(prefix + f.name);
  std::sort(names.begin(), names.end());
  return names;
}

std::string abi_header_text() {
  std::string out;
  for (std::string_view part : {view(tensmith_blob_dl_tensor, tensmith_blob_dl_tensor_size),
                                view(tensmith_blob_context, tensmith_blob_context_size),
                                view(tensmith_blob_cpu_requirement, tensmith_blob_cpu_requirement_size),
                                view(tensmith_blob_abi, tensmith_blob_abi_size)}) {
    while (!part.empty()) {
      const size_t end = std::min(part.find('\n'), part.size() - 1) + 1;
      const std::string_view line = part.substr(0, end);
      part.remove_prefix(end);
      if (!line.starts_with("#include \"")) out += line;  // our own parts stand here already
    }
    out += "\n";
  }
  return out;
}

std::string abi_prototypes(const std::string& prefix) {
  std::string out = "#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
  for (const Function& f : kFunctions) out += std::string(f.before) + prefix + f.name + "(" + f.parameters + ");\n";
  return out + "#ifdef __cplusplus\n}\n#endif\n";
}

std::string support_digest(std::string_view arch) {
  Result<std::string_view> object = support_object(arch);
  return sha256_hex(std::string(object ? *object : "") + abi_header_text());
}

}  // namespace tensmith
