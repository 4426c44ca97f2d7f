#include "apps/cli/model.h"

#include <charconv>
#include <chrono>
#include <filesystem>
#include <iostream>

#include "apps/driver/tuned.h"
#include "graph/import/specialize.h"
#include "runtime/base/config.h"
#include "runtime/base/files.h"
#include "runtime/base/sha256.h"
#include "runtime/export/instance.h"
#include "runtime/npy.h"
#include "runtime/time_line.h"

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
  const int64_t limit = config()->memory_limit_mib << 20;
  import.limits.file_bytes = std::min(import.limits.file_bytes, limit);
  import.limits.tensor_bytes = std::min(import.limits.tensor_bytes, limit);
  return import;
}

/// A graph text with its dims bound as an import binds them.
graph::ImportResult read_graph_text(const Options& options, const std::map<std::string, HostTensor>& arrays) {
  Result<graph::Graph> parsed = graph::parse_graph(take(read_file(options.model)));
  if (!parsed) throw UserError(parsed.failure().id, options.model + ": " + parsed.failure().message);
  graph::ImportResult result;
  result.graph = std::move(parsed).value();
  std::map<std::string, int64_t> sizes;
  for (graph::NodeId id : result.graph.inputs) {
    const auto array = arrays.find(result.graph.value_name({id, 0}));
    const std::vector<Expr>& shape = result.graph.type({id, 0}).shape;
    if (array == arrays.end() || array->second.shape().size() != shape.size()) continue;
    for (size_t d = 0; d < shape.size(); ++d)
      for (const Var& dim : result.graph.dims)
        if (shape[d].same_as(dim)) sizes.emplace(dim.name(), array->second.shape()[d]);
  }
  for (const auto& [name, size] : parse_dims(options.dims)) {
    bool known = false;
    for (const Var& dim : result.graph.dims) known = known || dim.name() == name;
    TS_USER_CHECK(known, "unknown-dim") << "--dim " << name << ": expected an open dim of the graph, got '" << name
                                        << "'; its first line lists them";
    sizes[name] = size;
  }
  if (!sizes.empty()) graph::GraphEditor(result.graph).bind_dims(sizes);
  return result;
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
  if (arrays.empty() || is_graph_text(options.model) || has_known_shapes(imported)) return std::move(imported).take();
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

void raise(const Failure& failure) {
  for (const char* id : {"missing-cpu-feature", "wrong-architecture", "abi-mismatch"})
    if (failure.id == id) throw TargetError(failure.id, failure.message);
  throw UserError(failure.id, failure.message);
}

bool is_library(const std::string& path) {
  const std::string suffix = std::filesystem::path(path).extension().string();
  return suffix == ".so";
}

void check_dims_known(const graph::Graph& graph) {
  const graph::OpenSizes open = graph::open_sizes(graph);
  TS_USER_CHECK(open.inputs.empty(), "symbolic-dims")
      << "model: expected sizes that are known when compiling, got open ones of inputs " << open.inputs << "; give "
      << open.dims << ", or arrays: " << open.arrays;
}

bool is_graph_text(const std::string& path) { return std::filesystem::path(path).extension() == ".graph"; }

std::string counted(size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::map<std::string, std::string> parse_assignments(const std::vector<std::string>& items, const char* flag) {
  std::map<std::string, std::string> map;
  for (const std::string& item : items) {
    // Names may hold an equals sign, and so may files.
    const size_t file = item.find("=@");
    const size_t equals = file != std::string::npos ? file : item.rfind('=');
    TS_USER_CHECK(equals != std::string::npos && equals > 0, "bad-assignment")
        << flag << " " << item << ": expected NAME=VALUE, got no '='; write " << flag << " NAME=VALUE";
    const auto [known, fresh] = map.emplace(item.substr(0, equals), item.substr(equals + 1));
    TS_USER_CHECK(fresh, "named-twice") << flag << " " << item << ": expected each name once, got " << known->first
                                        << " with '" << known->second << "' too; leave one out";
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
  const ScopedSpan span(process_time_line(), "import", "compile");
  TS_USER_CHECK(!is_library(options.model), "not-a-model")
      << options.model << ": expected an ONNX model, got a library by its name; give the model that it was made from";
  if (is_graph_text(options.model)) return read_graph_text(options, arrays);
  return graph::import_onnx(options.model, import_options(options, arrays));
}

CompileOptions compile_options(const Options& options) {
  CompileOptions compile;
  compile.target = take(Target::parse(options.target));
  compile.opt_level = options.opt_level;
  compile.threads = options.threads;
  TS_USER_CHECK(!options.require_tuned || !options.records.empty(), "bad-usage")
      << "--require-tuned: expected a file of records, got none; add --records R.jsonl";
  if (!options.records.empty()) {
    auto records = std::make_shared<RecordIndex>(take(RecordIndex::read(options.records)));
    for (const BadLine& bad : records->bad()) std::cerr << "note: skipped " << to_string(bad) << "\n";
    compile.records = std::move(records);
    compile.require_tuned = options.require_tuned;
    compile.other_builds = options.any_build ? OtherBuilds::kTake : OtherBuilds::kRefuse;
  }
  return compile;
}

LoadedModel load_model(const Options& options, const std::map<std::string, HostTensor>& arrays, bool keep_graph,
                       bool references, std::shared_ptr<const RecordIndex> records) {
  LoadedModel model;
  auto start = Clock::now();
  if (!is_library(options.model)) model.digest = take(sha256_file(options.model));
  if (is_library(options.model)) {
    TS_USER_CHECK(options.dims.empty(), "unknown-dim")
        << "--dim " << options.dims[0]
        << ": expected no --dim with a library, whose sizes are fixed; compile the model "
        << "again for others";
    TS_USER_CHECK(options.records.empty(), "bad-usage")
        << "--records: expected a model, got the library " << options.model << ", whose kernels are made; compile the "
        << "model with them";
    const ScopedSpan span(process_time_line(), "load", "load");
    model.module = take(Module::load(options.model));
    model.digest = model.module->model().digest;
    model.load_ms = ms_since(start);
    return model;
  }
  graph::Graph graph = import_for(options, arrays, &model.fixed);
  check_dims_known(graph);
  if (keep_graph) model.graph = graph.clone();
  model.import_ms = ms_since(start);
  start = Clock::now();
  CompileOptions compile = compile_options(options);
  compile.want_references = references;
  if (records) compile.records = std::move(records);
  auto program = std::make_shared<CompiledProgram>(compile_graph(graph, compile));
  program->model_digest = model.digest;
  if (!options.records.empty()) std::cerr << tuning_summary(*program) << "\n";
  model.program = program;
  model.module = load_program(model.program);
  model.load_ms = ms_since(start);
  return model;
}

void check_writable(const char* flag, const std::string& path) {
  if (path.empty() || path == "-") return;
  if (const Result<AtomicFile> probe = AtomicFile::create(path); !probe)
    throw UserError(probe.failure().id, std::string("option ") + flag + ": " + probe.failure().message);
}

std::map<std::string, HostTensor> read_arrays(const Options& options) {
  std::map<std::string, HostTensor> arrays;
  for (const auto& [name, value] : parse_assignments(options.inputs, "--input")) {
    if (value.rfind('@', 0) == 0) {
      arrays.emplace(name, take(read_npy(value.substr(1))));
      continue;
    }
    // The most common slip.
    std::error_code ignored;
    TS_USER_CHECK(!std::filesystem::is_regular_file(value, ignored), "bad-fill")
        << "--input " << name << "=" << value << ": expected @ in front of the name of a file; write --input " << name
        << "=@" << value;
  }
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
      take(fill(tensor, how == fills.end() ? "random:" + std::to_string(config()->seed) : how->second, io.name));
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
  if (is_library(options.model)) {
    if (options.target != "host") instance.target = options.target;
    instance.verify_weights = !options.serve;  // which times the start
  }
  return take(module.create(instance));
}

RunProfile::RunProfile(Instance& instance) : instance_(instance) {
  if (!process_time_line()) return;
  profiler_ = instance.make_profiler();
  instance.set_profiler(profiler_.get());
}

RunProfile::~RunProfile() {
  if (!profiler_) return;
  instance_.set_profiler(nullptr);
  profiler_->add_to(*process_time_line());
}

Provenance provenance(const char* schema, const Options& options, const LoadedModel& model, int threads) {
  std::string target;
  if (model.program) {
    target = to_string(model.program->target);
  } else if (model.module) {
    // The variant that runs here; an instance asks for it in the same way.
    const tensmith_model& description = model.module->model();
    char ignored[8];
    const int32_t variant = tensmith_choose_variant(&description, nullptr, ignored, sizeof ignored);
    target = description.variants[variant < 0 ? 0 : variant].target;
  } else {
    target = to_string(take(Target::parse(options.target)));
  }
  return {schema, target, threads, config()->seed, model.digest};
}

Provenance file_provenance(const char* schema, const Options& options) {
  const Result<Target> target = Target::parse(options.target);
  const Result<std::string> digest = sha256_file(options.model);
  return {schema, target ? to_string(target.value()) : options.target, options.threads, config()->seed,
          digest && !is_library(options.model) ? digest.value() : std::string()};
}

}  // namespace tensmith::cli
