#include "apps/cli/model.h"

#include <charconv>
#include <chrono>
#include <filesystem>
#include <iostream>

#include "graph/import/specialize.h"
#include "runtime/base/sha256.h"
#include "runtime/npy.h"

namespace tensmith::cli {

namespace {

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t d = 0; d < shape.size(); ++d) text += (d ? ", " : "") + std::to_string(shape[d]);
  return text + "]";
}

DType dtype_of(const tensmith_io& io) {
  return {static_cast<DType::Code>(io.dtype_code), io.dtype_bits, io.dtype_lanes};
}

/// Whether an array holds elements of the type in the form that files have: 16-bit floats as their bits, 4-bit integers
/// a byte each.
bool holds(const HostTensor& array, DType dtype) {
  const bool bits = dtype.is_float() && dtype.bits == 16 && array.dtype() == kUInt16;
  const bool narrow =
      dtype.is_integral() && dtype.bits == 4 && array.dtype().bits == 8 && array.dtype().code == dtype.code;
  return array.dtype() == dtype || bits || narrow;
}

graph::ImportOptions import_options(const Options& options, const std::map<std::string, HostTensor>& arrays) {
  graph::ImportOptions import;
  import.dims = parse_dims(options.dims);
  for (const auto& [name, array] : arrays) import.input_shapes[name] = array.shape();
  return import;
}

/// The arrays as constants of the types that the model declares; those of another type are left out.
std::map<std::string, graph::Constant> as_constants(const graph::ImportResult& imported,
                                                    const std::map<std::string, HostTensor>& arrays) {
  std::map<std::string, graph::Constant> constants;
  for (graph::NodeId id : imported.graph.inputs) {
    const auto array = arrays.find(imported.graph.value_name({id, 0}));
    const DType dtype = imported.graph.node(id).types[0].dtype;
    if (array == arrays.end() || !holds(array->second, dtype)) continue;
    graph::Constant constant = graph::Constant::allocate(dtype, array->second.shape());
    std::memcpy(constant.mutable_data(), array->second.raw(), static_cast<size_t>(constant.num_bytes()));
    constants.emplace(array->first, std::move(constant));
  }
  return constants;
}

/// The graph of the model; where shapes depend on the values of given inputs, these are fixed and named.
graph::Graph import_for(const Options& options, const std::map<std::string, HostTensor>& arrays,
                        std::vector<std::string>* fixed) {
  graph::ImportResult imported = import_model(options, arrays);
  if (arrays.empty() || has_known_shapes(imported)) return std::move(imported).take();
  auto special =
      graph::specialize_shapes(options.model, import_options(options, arrays), as_constants(imported, arrays));
  if (!special) return std::move(imported).take();
  *fixed = special->fixed;
  std::string names;
  for (const std::string& name : *fixed) names += (names.empty() ? "" : ", ") + name;
  if (options.batch.empty())
    std::cerr << "note: shapes depend on the values of " << names << ": compiled for the values given\n";
  return std::move(special->import).take();
}

}  // namespace

bool is_library(const std::string& path) {
  const std::string suffix = std::filesystem::path(path).extension().string();
  return suffix == ".so";
}

std::map<std::string, std::string> parse_assignments(const std::vector<std::string>& items, const char* flag) {
  std::map<std::string, std::string> map;
  for (const std::string& item : items) {
    // Names may hold an equals sign, and so may files.
    const size_t file = item.find("=@");
    const size_t equals = file != std::string::npos ? file : item.rfind('=');
    TS_USER_CHECK(equals != std::string::npos && equals > 0, "bad-assignment")
        << flag << " " << item << ": expected NAME=VALUE, got no '='; write " << flag << " NAME=VALUE";
    map[item.substr(0, equals)] = item.substr(equals + 1);
  }
  return map;
}

std::map<std::string, int64_t> parse_dims(const std::vector<std::string>& items) {
  std::map<std::string, int64_t> dims;
  for (const auto& [name, text] : parse_assignments(items, "--dim")) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    TS_USER_CHECK(error == std::errc() && end == text.data() + text.size() && value > 0 && value <= (int64_t{1} << 40),
                  "bad-dim")
        << "--dim " << name << "=" << text << ": expected a size from 1 to 2^40, got '" << text << "'; write --dim "
        << name << "=1";
    dims[name] = value;
  }
  return dims;
}

graph::ImportResult import_model(const Options& options, const std::map<std::string, HostTensor>& arrays) {
  return graph::import_onnx(options.model, import_options(options, arrays));
}

CompileOptions compile_options(const Options& options) {
  CompileOptions compile;
  compile.target = take(Target::parse(options.target));
  compile.opt_level = options.opt_level;
  compile.threads = options.threads;
  return compile;
}

LoadedModel load_model(const Options& options, const std::map<std::string, HostTensor>& arrays, bool keep_graph) {
  LoadedModel model;
  auto start = Clock::now();
  model.digest = take(sha256_file(options.model));
  if (is_library(options.model)) {
    model.module = take(Module::load(options.model));
    model.load_ms = ms_since(start);
    return model;
  }
  graph::Graph graph = import_for(options, arrays, &model.fixed);
  if (keep_graph) model.graph = graph.clone();
  model.import_ms = ms_since(start);
  start = Clock::now();
  auto program = std::make_shared<CompiledProgram>(compile_graph(graph, compile_options(options)));
  program->model_digest = model.digest;
  model.program = program;
  model.module = load_program(model.program);
  model.load_ms = ms_since(start);
  return model;
}

std::map<std::string, HostTensor> read_arrays(const Options& options) {
  std::map<std::string, HostTensor> arrays;
  for (const auto& [name, value] : parse_assignments(options.inputs, "--input"))
    if (value.rfind('@', 0) == 0) arrays.emplace(name, take(read_npy(value.substr(1))));
  return arrays;
}

std::vector<HostTensor> make_inputs(const LoadedModel& model, const Options& options,
                                    std::map<std::string, HostTensor> arrays) {
  std::map<std::string, std::string> fills = parse_assignments(options.inputs, "--input");
  for (const std::string& name : model.fixed) fills.erase(name);
  const tensmith_model& description = model.module->model();
  std::vector<HostTensor> tensors;
  std::string known;
  for (int32_t k = 0; k < description.num_inputs; ++k) {
    const tensmith_io& io = description.inputs[k];
    known += (known.empty() ? "" : ", ") + std::string(io.name);
    const std::vector<int64_t> shape(io.shape, io.shape + io.ndim);
    const DType dtype = dtype_of(io);
    if (auto array = arrays.find(io.name); array != arrays.end()) {
      TS_USER_CHECK(array->second.shape() == shape, "input-shape")
          << "input " << io.name << ": expected shape " << shape_text(shape) << ", got "
          << shape_text(array->second.shape()) << "; give an array of that shape, or compile for this one with --dim";
      TS_USER_CHECK(holds(array->second, dtype), "input-dtype")
          << "input " << io.name << ": expected " << to_string(dtype) << ", got " << to_string(array->second.dtype())
          << "; convert the array, e.g. numpy's astype";
      HostTensor tensor(shape, dtype);
      std::memcpy(tensor.raw(), array->second.raw(), tensor.bytes());
      tensors.push_back(std::move(tensor));
    } else {
      HostTensor tensor(shape, dtype);
      const auto how = fills.find(io.name);
      take(fill(tensor, how == fills.end() ? "random:0" : how->second, io.name));
      tensors.push_back(std::move(tensor));
    }
    fills.erase(io.name);
  }
  TS_USER_CHECK(fills.empty(), "unknown-input")
      << "--input " << fills.begin()->first << ": expected an input of the model, got '" << fills.begin()->first
      << "'; its inputs are " << known;
  return tensors;
}

Instance make_instance(const Module& module, const Options& options) {
  InstanceOptions instance;
  instance.threads = options.threads;
  return take(module.create(instance));
}

Provenance provenance(const char* schema, const Options& options, const LoadedModel& model, int threads) {
  return {schema, model.program ? to_string(model.program->target) : options.target, threads, 0, model.digest};
}

}  // namespace tensmith::cli
