#include "runtime/module.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "runtime/base/config.h"
#include "runtime/base/target.h"
#include "runtime/export/elf_rename.h"
#include "runtime/export/instance.h"
#include "runtime/manifest.h"

namespace tensmith {

struct Module::State {
  ~State() {
    if (library) ::dlclose(library);
  }
  std::string name;
  void* library = nullptr;
  const tensmith_api* api = nullptr;
  std::optional<LoadedModel> loaded;  // programs of this process
  std::shared_ptr<const void> code;
};

namespace {

/// The interface's functions for programs of this process. `create` needs the model and is called directly.
constexpr tensmith_api kLocalApi = {sizeof(tensmith_api),
                                    TENSMITH_ABI_VERSION,
                                    nullptr,
                                    nullptr,
                                    tensmith_instance_destroy,
                                    tensmith_instance_run_buffers,
                                    tensmith_instance_run_tensors,
                                    tensmith_instance_output_shape,
                                    tensmith_instance_last_error,
                                    tensmith_instance_workspace_size,
                                    tensmith_instance_set_workspace,
                                    tensmith_instance_set_parallel_for,
                                    tensmith_instance_set_on_kernel,
                                    tensmith_instance_variant,
                                    tensmith_instance_threads};

/// What the file itself says: its architecture and the prefixes of the programs in it.
Result<std::vector<std::string>> prefixes_of(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return Failure{"cannot-read", path + ": cannot be read: " + std::strerror(errno)};
  struct stat info;
  void* bytes = MAP_FAILED;
  if (::fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0)
    bytes = ::mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, file, 0);
  ::close(file);
  if (bytes == MAP_FAILED)
    return Failure{"bad-object", path + ": expected a shared library, got no regular file or an empty one"};
  struct Unmap {
    void* bytes;
    size_t size;
    ~Unmap() { ::munmap(bytes, size); }
  } unmap{bytes, static_cast<size_t>(info.st_size)};
  const std::string_view view(static_cast<const char*>(bytes), unmap.size);

  Result<std::string> arch = elf_arch(view);
  if (!arch) return Failure{"bad-object", path + ": expected a shared library: " + arch.failure().message};
  if (*arch != Target::host().arch)
    return Failure{"wrong-architecture", path + ": expected a library for " + Target::host().arch + ", got one for " +
                                             *arch + "; compile for this machine's target"};
  Result<std::vector<std::string>> names = exported_symbols(view);
  if (!names) return Failure{"bad-object", path + ": expected a shared library: " + names.failure().message};
  std::vector<std::string> prefixes;
  constexpr std::string_view kQuery = "get_api";
  for (const std::string& name : *names)
    if (name.size() > kQuery.size() && name.ends_with(kQuery))
      prefixes.push_back(name.substr(0, name.size() - kQuery.size()));
  return prefixes;
}

}  // namespace

const char* error_id_of_code(int32_t code) {
  switch (code) {
    case TENSMITH_OK: return "";
    case TENSMITH_BAD_ARGUMENT: return "bad-argument";
    case TENSMITH_BAD_TENSOR: return "bad-tensor";
    case TENSMITH_MISSING_CPU_FEATURE: return "missing-cpu-feature";
    case TENSMITH_BAD_WEIGHTS: return "bad-weights";
    case TENSMITH_BUSY: return "instance-busy";
    case TENSMITH_OUT_OF_MEMORY: return "out-of-memory";
    default: return "run-failed";
  }
}

Result<Module> Module::load(const std::string& path, const LoadOptions& options) {
  char real[PATH_MAX];
  if (!::realpath(path.c_str(), real))
    return Failure{"cannot-read", path + ": cannot be read: " + std::strerror(errno)};
  Result<std::vector<std::string>> prefixes = prefixes_of(path);
  if (!prefixes) return prefixes.failure();
  std::string list;
  for (const std::string& prefix : *prefixes) list += (list.empty() ? "" : ", ") + prefix;
  if (prefixes->empty())
    return Failure{"not-a-module",
                   path + ": expected a library that tensmith made, got one without a function *get_api"};
  std::string prefix = options.prefix;
  if (prefix.empty() && prefixes->size() == 1) prefix = prefixes->front();
  if (std::find(prefixes->begin(), prefixes->end(), prefix) == prefixes->end())
    return Failure{"not-a-module", path + ": expected one of the programs " + list + ", got '" + prefix + "'"};

  const std::string manifest = manifest_path(real);
  if (options.verify && ::access(manifest.c_str(), F_OK) == 0) {
    Result<Json> json = read_manifest(manifest);
    if (!json) return json.failure();
    if (Result<bool> same = check_against_manifest(real, *json); !same) return same.failure();
  }
  auto state = std::make_shared<State>();
  state->name = prefix;
  // Local, so that symbols of several libraries stay apart; now, so that what is missing shows here and not in a run.
  state->library = ::dlopen(real, RTLD_NOW | RTLD_LOCAL);
  if (!state->library) {
    const char* why = ::dlerror();
    return Failure{"cannot-load", path + ": cannot be loaded: " + (why ? why : "unknown reason")};
  }
  auto get_api = reinterpret_cast<tensmith_get_api>(::dlsym(state->library, (prefix + "get_api").c_str()));
  state->api = get_api ? get_api(TENSMITH_ABI_VERSION) : nullptr;
  if (!state->api || state->api->version != TENSMITH_ABI_VERSION || state->api->size < sizeof(tensmith_api) ||
      state->api->model->abi_version != TENSMITH_ABI_VERSION)
    return Failure{"abi-mismatch", path + ": expected interface version " + std::to_string(TENSMITH_ABI_VERSION) +
                                       ", got another; export the model with this version of the tool"};
  return Module(std::move(state));
}

Result<Module> Module::from_memory(const ModelDescription& description,
                                   const std::function<const void*(const std::string&)>& resolve,
                                   std::shared_ptr<const void> code) {
  Result<LoadedModel> loaded = LoadedModel::load(description, resolve);
  if (!loaded) return loaded.failure();
  auto state = std::make_shared<State>();
  state->name = description.name;
  state->api = &kLocalApi;
  state->loaded = std::move(loaded).value();
  state->code = std::move(code);
  return Module(std::move(state));
}

const tensmith_model& Module::model() const { return state_->loaded ? *state_->loaded->model() : *state_->api->model; }

const tensmith_api* Module::api() const { return state_->api; }

struct Instance::State {
  std::shared_ptr<const Module::State> module;
  const tensmith_model* model = nullptr;
  tensmith_instance* instance = nullptr;
  Profiler* profiler = nullptr;
  // C views of the tensors of a run; kept so that steady runs allocate nothing.
  std::vector<tensmith_tensor> inputs, outputs;

  const tensmith_api& api() const { return *module->api; }
  Failure failure(int32_t code) const {
    if (code == TENSMITH_BUSY)
      return {error_id_of_code(code), std::string(model->name) + ": the instance is running in another thread"};
    return {error_id_of_code(code), api().last_error(instance)};
  }
};

Instance::Instance(std::unique_ptr<State> state) : state_(std::move(state)) {}
Instance::Instance(Instance&&) noexcept = default;
Instance::~Instance() {
  if (state_) state_->api().destroy(state_->instance);
}

Result<Instance> Module::create(const InstanceOptions& given) const {
  char error[512] = "";
  tensmith_options options = {};
  options.size = sizeof options;
  options.flags = (given.verify_weights ? TENSMITH_VERIFY_WEIGHTS : 0) |
                  (given.copy_weights ? TENSMITH_COPY_WEIGHTS : 0) |
                  (config()->huge_pages ? 0 : TENSMITH_NO_HUGE_PAGES);
  options.num_threads = given.threads;
  const int64_t spin = std::min<int64_t>(config()->spin_us, 1000000);
  options.spin_us = spin == 0 ? -1 : static_cast<int32_t>(spin);
  options.target = given.target.empty() ? nullptr : given.target.c_str();
  options.weights_path = given.weights_path.empty() ? nullptr : given.weights_path.c_str();
  options.error = error;
  options.error_bytes = sizeof error;
  auto state = std::make_unique<Instance::State>();
  state->module = state_;
  state->model = &model();
  const int32_t code = state_->loaded ? tensmith_instance_create(state_->loaded->model(), &options, &state->instance)
                                      : state_->api->create(&options, &state->instance);
  if (code != TENSMITH_OK) return Failure{error_id_of_code(code), error};
  state->inputs.resize(static_cast<size_t>(state->model->num_inputs));
  state->outputs.resize(static_cast<size_t>(state->model->num_outputs));
  return Instance(std::move(state));
}

namespace {

Failure wrong_count(const tensmith_model& model, const char* what, int32_t expected, size_t got) {
  return {"bad-tensor", std::string(model.name) + ": expected " + std::to_string(expected) + " " + what + ", got " +
                            std::to_string(got)};
}

}  // namespace

Result<void> Instance::run_into(std::span<HostTensor> inputs, std::span<HostTensor> outputs) {
  State& s = *state_;
  if (inputs.size() != s.inputs.size()) return wrong_count(*s.model, "inputs", s.model->num_inputs, inputs.size());
  if (outputs.size() != s.outputs.size()) return wrong_count(*s.model, "outputs", s.model->num_outputs, outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) s.inputs[i] = inputs[i].dl();
  for (size_t i = 0; i < outputs.size(); ++i) s.outputs[i] = outputs[i].dl();
  const int64_t start = s.profiler ? now_ns() : 0;
  const int32_t code = s.api().run_tensors(s.instance, s.inputs.data(), s.outputs.data());
  if (code != TENSMITH_OK) return s.failure(code);
  if (s.profiler) s.profiler->add_run(now_ns() - start);
  return {};
}

Result<std::vector<std::vector<int64_t>>> Instance::output_shapes(std::span<HostTensor> inputs) {
  State& s = *state_;
  if (inputs.size() != s.inputs.size()) return wrong_count(*s.model, "inputs", s.model->num_inputs, inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) s.inputs[i] = inputs[i].dl();
  std::vector<std::vector<int64_t>> shapes;
  for (int32_t i = 0; i < s.model->num_outputs; ++i) {
    std::vector<int64_t> shape(static_cast<size_t>(s.model->outputs[i].ndim));
    int64_t none = 0;  // a scalar's shape has no address
    if (int32_t code = s.api().output_shape(s.instance, s.inputs.data(), i, shape.empty() ? &none : shape.data());
        code != TENSMITH_OK)
      return s.failure(code);
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

Result<std::vector<HostTensor>> Instance::run(std::span<HostTensor> inputs) {
  Result<std::vector<std::vector<int64_t>>> shapes = output_shapes(inputs);
  if (!shapes) return shapes.failure();
  std::vector<HostTensor> outputs;
  for (size_t i = 0; i < shapes->size(); ++i) {
    const tensmith_io& io = model().outputs[i];
    outputs.emplace_back((*shapes)[i], DType{static_cast<DType::Code>(io.dtype_code), io.dtype_bits, io.dtype_lanes});
  }
  if (Result<void> done = run_into(inputs, outputs); !done) return done.failure();
  return outputs;
}

void Instance::set_profiler(Profiler* profiler) {
  state_->profiler = profiler;
  state_->api().set_on_kernel(state_->instance, profiler ? Profiler::hook : nullptr, profiler);
}

void Instance::set_on_kernel(void (*hook)(void* user, int32_t kernel, int32_t is_end), void* user) {
  state_->profiler = nullptr;
  state_->api().set_on_kernel(state_->instance, hook, user);
}

Result<void> Instance::set_workspace(void* memory, int64_t bytes) {
  if (const int32_t code = state_->api().set_workspace(state_->instance, memory, bytes); code != TENSMITH_OK)
    return Failure{error_id_of_code(code),
                   std::string(model().name) + ": workspace: expected memory aligned to 64 bytes"};
  return {};
}

std::unique_ptr<Profiler> Instance::make_profiler() const {
  std::vector<KernelInfo> kernels;
  for (int32_t i = 0; i < variant().num_kernels; ++i) {
    const tensmith_kernel& k = variant().kernels[i];
    kernels.push_back({k.name, k.flops, k.bytes});
  }
  return std::make_unique<Profiler>(std::move(kernels));
}

const tensmith_model& Instance::model() const { return *state_->model; }
const tensmith_variant& Instance::variant() const {
  return state_->model->variants[state_->api().variant(state_->instance)];
}
int Instance::threads() const { return state_->api().threads(state_->instance); }

}  // namespace tensmith
