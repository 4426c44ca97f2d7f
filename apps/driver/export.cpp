#include "apps/driver/export.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "apps/driver/staging.h"
#include "codegen/data_object.h"
#include "codegen/jit.h"
#include "codegen/link.h"
#include "runtime/base/config.h"
#include "runtime/base/files.h"
#include "runtime/base/json.h"
#include "runtime/base/sha256.h"
#include "runtime/export/model_image.h"
#include "runtime/export/support_object.h"
#include "runtime/export/weights_writer.h"
#include "runtime/manifest.h"

namespace tensmith {

namespace {

// Code reaches embedded weights by 32-bit distances, and a larger library is slow to map; such weights lie in a file
// beside it.
constexpr int64_t kMaxEmbedded = int64_t{64} << 20;

template <typename T>
T take(Result<T> result) {
  if (!result) throw UserError(result.failure().id, result.failure().message);
  if constexpr (!std::is_void_v<T>) return std::move(result).value();
}

WeightsDigests write_weights(int64_t size, const DataPieces& pieces, const std::string& path) {
  WeightsWriter writer = take(WeightsWriter::create(path, size));
  pieces([&](std::span<const uint8_t> piece) { take(writer.write(piece)); });
  return take(writer.finish());
}

ModelDescription describe(const CompiledProgram& program, const std::string& name) {
  ModelDescription d;
  d.name = name;
  d.digest = program.model_digest;
  d.messages = program.messages;
  const auto io = [](const PortSpec& port) {
    return ModelDescription::Io{port.name, port.shape, port.dtype, static_cast<int>(port.dtype.bytes())};
  };
  for (const PortSpec& port : program.inputs) d.inputs.push_back(io(port));
  for (const PortSpec& port : program.outputs) d.outputs.push_back(io(port));
  ModelDescription::Variant variant;
  variant.target = to_string(program.target);
  variant.requirements = required_cpu_features(program.target);
  variant.run_symbol = program.prefix + "main_packed";
  variant.arena_bytes = program.arena_bytes;
  variant.weights_symbol = program.prefix + "weights";
  variant.weights_bytes = program.weights->size();
  for (const KernelCall& call : program.calls) {
    const CompiledKernel& kernel = program.kernels[call.kernel];
    variant.kernels.push_back({kernel.name + " " + call.label, kernel.cost.flops, kernel.cost.bytes});
  }
  d.variants.push_back(variant);
  d.default_threads = program.default_threads;
  return d;
}

Json manifest_of(const CompiledProgram& program, const std::string& name, const std::string& weights_file) {
  Json json = manifest_header(
      {"tensmith.manifest/1", to_string(program.target), program.threads, config()->seed, program.model_digest});
  json["name"] = name;
  const auto ports = [](const std::vector<PortSpec>& list) {
    Json array = Json::array();
    for (const PortSpec& port : list)
      array.push_back(
          {{"name", port.name}, {"dtype", to_string(port.dtype)}, {"shape", port.shape}, {"layout", "row-major"}});
    return array;
  };
  json["inputs"] = ports(program.inputs);
  json["outputs"] = ports(program.outputs);
  json["arena_bytes"] = program.arena_bytes;
  json["weight_bytes"] = program.weights->size();
  json["weights"] = weights_file.empty() ? "embedded" : weights_file;
  Json kernels = Json::array();
  for (const CompiledKernel& kernel : program.kernels)
    kernels.push_back({{"name", kernel.name},
                       {"ops", kernel.ops},
                       {"flops", kernel.cost.flops},
                       {"bytes", kernel.cost.bytes},
                       {"plain_loops", kernel.is_plain},
                       {"schedule", kernel.schedule.to_string()}});
  json["kernels"] = kernels;
  Json calls = Json::array();
  for (const KernelCall& call : program.calls)
    calls.push_back({{"kernel", program.kernels[call.kernel].name}, {"nodes", call.label}});
  json["calls"] = calls;
  return json;
}

ObjectCode object_from(std::string_view bytes) { return {std::vector<uint8_t>(bytes.begin(), bytes.end()), {}, {}}; }

const char* c_type(DType dtype) {
  if (dtype.is_bool()) return "uint8_t";
  if (dtype == kFloat32) return "float";
  if (dtype == kFloat64) return "double";
  const bool is_unsigned = dtype.is_uint() || dtype.is_float();
  switch (dtype.bytes()) {
    case 1: return is_unsigned ? "uint8_t" : "int8_t";
    case 2: return is_unsigned ? "uint16_t" : "int16_t";
    case 4: return is_unsigned ? "uint32_t" : "int32_t";
    default: return is_unsigned ? "uint64_t" : "int64_t";
  }
}

std::string identifier(const std::string& text) {
  std::string id;
  for (char c : text) id += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (id.empty() || std::isdigit(static_cast<unsigned char>(id[0]))) id = "m" + id;
  return id;
}

/// The typed entry's parameters: names made unique C identifiers.
std::vector<std::string> parameter_names(const CompiledProgram& program) {
  std::vector<std::string> names;
  const auto add = [&](const PortSpec& port, const char* kind) {
    std::string name = std::string(kind) + "_" + identifier(port.name);
    while (std::find(names.begin(), names.end(), name) != names.end()) name += "_";
    names.push_back(name);
  };
  for (const PortSpec& port : program.inputs) add(port, "in");
  for (const PortSpec& port : program.outputs) add(port, "out");
  return names;
}

std::string header_text(const CompiledProgram& program, const std::string& name) {
  const std::string guard = "TENSMITH_EXPORT_" + identifier(name) + "_H";
  std::ostringstream out;
  out << "/* " << name << ": compiled by tensmith for " << to_string(program.target) << ".\n";
  const std::vector<std::string> names = parameter_names(program);
  size_t k = 0;
  const auto list = [&](const std::vector<PortSpec>& ports) {
    for (const PortSpec& port : ports) {
      out << " *   " << names[k++] << ": " << to_string(port.dtype) << "[";
      for (size_t d = 0; d < port.shape.size(); ++d) out << (d ? ", " : "") << port.shape[d];
      out << "], row-major\n";
    }
  };
  list(program.inputs);
  list(program.outputs);
  out << " */\n#ifndef " << guard << "\n#define " << guard << "\n\n"
      << abi_header_text() << "\n"
      << abi_prototypes(program.prefix) << "\n";
  out << "#ifdef __cplusplus\nextern \"C\" {\n#endif\n/* The typed entry: runs once on dense row-major data. Returns 0 "
         "or a TENSMITH_ code. */\nint32_t "
      << program.prefix << "run(tensmith_instance* instance";
  k = 0;
  for (const PortSpec& port : program.inputs) out << ",\n    const " << c_type(port.dtype) << "* " << names[k++];
  for (const PortSpec& port : program.outputs) out << ",\n    " << c_type(port.dtype) << "* " << names[k++];
  out << ");\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
  return out.str();
}

/// `P_run(instance, in..., out...)` in loop IR: fills two tables of pointers and calls P_run_buffers. Generated
/// functions take a context first and hand it on to functions of the program; here that first parameter is the
/// instance.
LoopProgram typed_entry(const CompiledProgram& program) {
  const auto table = [](const char* name, size_t count) {
    return make_buffer(name, kHandle, {Expr(static_cast<int64_t>(std::max<size_t>(count, 1)))}, Scope::kStack, 8);
  };
  const auto address = [](const Buffer& buffer) {
    return Call::make(kHandle, Intrinsic::kAddressOf, {Load::make(buffer, {Expr(0)})});
  };
  const Buffer inputs = table("inputs", program.inputs.size()), outputs = table("outputs", program.outputs.size());
  LoopFunction run;
  run.name = program.prefix + "run";
  std::vector<Stmt> body;
  const auto add = [&](const PortSpec& port, const Buffer& where, size_t index) {
    run.buffers.push_back(make_buffer("p" + std::to_string(run.buffers.size()), port.dtype, {Expr(1)}, Scope::kGlobal,
                                      static_cast<int>(port.dtype.bytes())));
    body.push_back(Store::make(where, {Expr(static_cast<int64_t>(index))}, address(run.buffers.back())));
  };
  for (size_t k = 0; k < program.inputs.size(); ++k) add(program.inputs[k], inputs, k);
  for (size_t k = 0; k < program.outputs.size(); ++k) add(program.outputs[k], outputs, k);
  LoopFunction callee;
  callee.name = program.prefix + "run_buffers";
  callee.buffers = {make_buffer("inputs", kHandle, {Expr(1)}, Scope::kGlobal, 8),
                    make_buffer("outputs", kHandle, {Expr(1)}, Scope::kGlobal, 8),
                    make_buffer("symbols", kInt64, {Expr(1)}, Scope::kGlobal, 8)};
  callee.attrs[kDeclaration] = 1;
  body.push_back(
      Evaluate::make(Call::make_extern(kInt32, callee.name, {address(inputs), address(outputs), address(inputs)})));
  run.body = Allocate::make(inputs, Allocate::make(outputs, Block::make(body)));
  return LoopProgram{{callee, run}};
}

ExportResult export_with(const CompiledProgram& program, const ExportOptions& options, const DataPieces& pieces) {
  const std::filesystem::path path(options.path);
  const std::string suffix = path.extension().string();
  if (suffix != ".so" && suffix != ".a" && suffix != ".o")
    throw UserError("bad-output-suffix",
                    "output " + options.path + ": expected a name that ends in .so, .a or .o, got '" + suffix + "'");
  TS_CHECK(program.prefix == prefix_for(options.path)) << program.prefix;
  const std::string name = program.prefix.substr(0, program.prefix.size() - 1);
  ExportResult result;
  result.library = options.path;
  result.header = (path.parent_path() / (name + ".h")).string();
  result.manifest = manifest_path(options.path);
  const bool in_file = options.weights == WeightsHome::kFile ||
                       (options.weights == WeightsHome::kAuto && program.weights->size() > kMaxEmbedded);

  ModelDescription description = describe(program, name);
  std::vector<ObjectCode> objects = program.objects;
  Staging staging(path.parent_path());
  const std::string staged_header = staging.path_for(result.header),
                    staged_manifest = staging.path_for(result.manifest);
  Json weights_entry;
  LinkOptions link;
  if (in_file) {
    const std::string file = name + ".weights";
    result.weights = (path.parent_path() / file).string();
    const std::string staged = staging.path_for(result.weights);
    const WeightsDigests digests = write_weights(program.weights->size(), pieces, staged);
    weights_entry = take(manifest_file_entry(staged, sha256_text(digests.file)));
    description.variants[0].weights_sha256 = digests.weights;
    description.variants[0].weights_file = file;
    description.variants[0].weights_symbol.clear();
  } else {
    link.object_files.push_back(staging.scratch("weights.o"));
    take(write_data_object(link.object_files[0], program.prefix + "weights", program.weights->size(), 64,
                           program.target, pieces));
  }
  const std::string staged_library = staging.path_for(result.library);  // comes last to its place
  Json manifest = manifest_of(program, name, in_file ? name + ".weights" : "");
  description.manifest = json_text(manifest);
  objects.push_back(object_from(model_object(description, program.target.arch, program.prefix + "model")));
  objects.push_back(object_from(take(support_object_for(program.target.arch, program.prefix))));

  CodegenOptions codegen;
  codegen.module_name = "entry";
  objects.push_back(compile(typed_entry(program), program.target, codegen));

  link.soname = path.filename().string();
  link.exported = exported_names(program.prefix);
  link.exported.push_back(program.prefix + "run");
  const auto write = [](const std::string& file, std::string_view bytes) { take(write_file(file, bytes)); };
  if (suffix == ".so") {
    link_shared_library(objects, program.target, link, staged_library);
  } else {
    ObjectCode whole = link_object(objects, program.target, link);
    if (suffix == ".a") {
      const std::vector<uint8_t> archive = make_archive({{name + ".o", std::move(whole)}});
      write(staged_library, {reinterpret_cast<const char*>(archive.data()), archive.size()});
    } else {
      write(staged_library, {reinterpret_cast<const char*>(whole.bytes.data()), whole.bytes.size()});
    }
  }
  write(staged_header, header_text(program, name));
  manifest["files"] = Json::array();
  for (const std::string& file : {staged_library, staged_header})
    manifest["files"].push_back(take(manifest_file_entry(file)));
  if (in_file) manifest["files"].push_back(std::move(weights_entry));
  write(staged_manifest, json_text(manifest));
  staging.commit();
  return result;
}

}  // namespace

std::string prefix_for(const std::string& path) {
  std::string stem = std::filesystem::path(path).stem().string();
  if (stem.rfind("lib", 0) == 0 && stem.size() > 3) stem = stem.substr(3);
  return identifier(stem) + "_";
}

Module load_program(std::shared_ptr<const CompiledProgram> program) {
  if (const char* missing = program->target.missing_on_host())
    throw TargetError("missing-cpu-feature", "program: compiled for " + to_string(program->target) +
                                                 ": this machine lacks " + missing +
                                                 "; compile with --target host or a lower level");
  struct Code {
    std::shared_ptr<const CompiledProgram> program;
    JitModule module;
  };
  const WeightBytes& weights = program->weights->bytes();
  auto code = std::make_shared<Code>(Code{program, JitModule::load(program->objects)});
  const auto resolve = [&](const std::string& symbol) -> const void* {
    if (symbol == program->prefix + "weights") return weights.data();
    return code->module.find(symbol);
  };
  return take(Module::from_memory(describe(*program, "model"), resolve, code));
}

ExportResult export_program(const CompiledProgram& program, const ExportOptions& options) {
  return export_with(program, options, [&](const auto& take_piece) { program.weights->for_each(take_piece); });
}

ExportResult export_last(CompiledProgram& program, const ExportOptions& options) {
  ExportResult result =
      export_with(program, options, [&](const auto& take_piece) { program.weights->for_each_at_last(take_piece); });
  program.weights = nullptr;
  return result;
}

}  // namespace tensmith
