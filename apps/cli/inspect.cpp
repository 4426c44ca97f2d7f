#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>

#include "apps/cli/commands.h"
#include "apps/cli/model.h"
#include "codegen/disassemble.h"
#include "runtime/base/config.h"
#include "runtime/base/files.h"
#include "runtime/base/sha256.h"
#include "tensor/print.h"

namespace tensmith::cli {

namespace {

/// The kernels among `names` whose names contain the text. Errors: unknown-kernel, naming the nearest.
std::vector<size_t> choose(const std::string& model, const std::vector<std::string>& names, const std::string& wanted) {
  std::vector<size_t> chosen;
  for (size_t k = 0; k < names.size(); ++k)
    if (names[k].find(wanted) != std::string::npos) chosen.push_back(k);
  if (!chosen.empty()) return chosen;
  // Near by the whole name or by one of its words.
  std::vector<std::string> words;
  for (const std::string& name : names) {
    for (size_t start = 0; start < name.size();) {
      const size_t end = std::min(name.find('_', start), name.size());
      words.push_back(name.substr(start, end - start));
      start = end + 1;
    }
    words.push_back(name);
  }
  const std::string near = nearest_word(wanted, words);
  std::string list;
  for (size_t k = 0; k < std::min<size_t>(names.size(), 5); ++k) list += (k ? ", " : "") + names[k];
  throw UserError("unknown-kernel", "inspect " + model + ": expected a part of a kernel's name, such as " + list +
                                        (names.size() > 5 ? ", ..." : "") + "; got '" + wanted + "'" +
                                        (near.empty() ? "" : "; did you mean '" + near + "'?") +
                                        "; inspect without --schedule and --asm lists them");
}

/// The lines of one function in an assembly text, those of its parallel loops included.
std::string function_of(const std::string& code, const std::string& name) {
  std::string text;
  bool inside = false;
  for (size_t start = 0; start < code.size();) {
    const size_t end = std::min(code.find('\n', start), code.size());
    const std::string line = code.substr(start, end - start);
    if (!line.empty() && line.back() == ':' && line[0] != '.')
      inside = line.rfind(name, 0) == 0 && (line.size() == name.size() + 1 || line[name.size()] == '.');
    if (inside) text += line + "\n";
    start = end + 1;
  }
  return text.empty() ? "not found: the library was stripped\n" : text;
}

int inspect_library(const Options& options, const LoadedModel& model) {
  const tensmith_model& description = model.module->model();
  const Json manifest = take(parse_json(description.manifest));
  std::vector<std::string> names;
  for (const Json& kernel : manifest["kernels"]) names.push_back(kernel["name"]);
  if (options.json) {
    Json json = json_header(provenance("tensmith.inspect/1", options, model, manifest.value("threads", 0)));
    for (const auto& [key, value] : manifest.items())
      if (!json.contains(key)) json[key] = value;
    std::cout << json_text(json);
    return 0;
  }
  const bool one = !options.schedule.empty() || !options.assembly.empty();
  const std::vector<size_t> chosen =
      choose(options.model, names, options.schedule.empty() ? options.assembly : options.schedule);
  std::string code;
  if (!options.assembly.empty()) {
    const std::string bytes = take(read_file(options.model));
    const ObjectCode object{{bytes.begin(), bytes.end()}, {}, {}};
    code = disassemble(object, take(Target::parse(description.variants[0].target)));
  }
  if (!one) {
    std::cout << description.name << " by " << description.compiler << "\n";
    for (int32_t v = 0; v < description.num_variants; ++v)
      std::cout << "variant for " << description.variants[v].target << ": " << description.variants[v].num_kernels
                << " kernel calls, arena " << description.variants[v].arena_bytes << " bytes, weights "
                << description.variants[v].weights_bytes << " bytes\n";
  }
  for (size_t k : chosen) {
    const Json& kernel = manifest["kernels"][k];
    std::cout << names[k] << " " << kernel["ops"].dump() << "\n";
    if (one) std::cout << kernel["schedule"].get<std::string>() << "\n";
    if (!options.assembly.empty())
      std::cout << "assembly\n" << function_of(code, std::string(description.name) + "_" + names[k]) << "\n";
  }
  return 0;
}

}  // namespace

int inspect(const Options& options) {
  if (is_library(options.model)) return inspect_library(options, load_model(options, {}));
  LoadedModel model;
  model.digest = take(sha256_file(options.model));
  graph::Graph graph = import_model(options).take();
  check_dims_known(graph);
  // The switches that print kernels mean those that are chosen here.
  if (const std::string& chosen = options.schedule.empty() ? options.assembly : options.schedule; !chosen.empty()) {
    Config shown = *config();
    if (shown.filter.empty()) shown.filter = chosen;
    set_config(shown);
  }
  CompileOptions compile = compile_options(options);
  compile.want_asm = !options.assembly.empty();
  model.program = std::make_shared<const CompiledProgram>(compile_graph(graph, compile));
  const CompiledProgram& program = *model.program;
  if (options.json) {
    Json json = json_header(provenance("tensmith.inspect/1", options, model, program.threads));
    json["arena_bytes"] = program.arena_bytes;
    json["arena_lower_bound"] = program.stats.arena_lower_bound;
    json["weight_bytes"] = program.stats.weight_bytes;
    Json kernels = Json::array();
    for (const CompiledKernel& kernel : program.kernels)
      kernels.push_back({{"name", kernel.name},
                         {"ops", kernel.ops},
                         {"first_node", kernel.first_node},
                         {"flops", kernel.cost.flops},
                         {"bytes", kernel.cost.bytes},
                         {"schedule", kernel.schedule.to_string()},
                         {"explanation", kernel.explanation},
                         {"plain_loops", kernel.is_plain},
                         {"schedule_ms", kernel.schedule_ms},
                         {"lower_ms", kernel.lower_ms},
                         {"codegen_ms", kernel.codegen_ms}});
    json["kernels"] = kernels;
    std::cout << json_text(json);
    return 0;
  }
  std::vector<std::string> names;
  for (const CompiledKernel& kernel : program.kernels) names.push_back(kernel.name);
  const bool one = !options.schedule.empty() || !options.assembly.empty();
  for (size_t k : choose(options.model, names, options.schedule.empty() ? options.assembly : options.schedule)) {
    const CompiledKernel& kernel = program.kernels[k];
    std::cout << kernel.name << " (" << kernel.first_node << ")" << (kernel.is_plain ? ", plain loops" : "") << "\n";
    if (!one) continue;
    std::cout << "\nworkload\n"
              << to_text(kernel.schedule.workload()) << "\nwhy\n"
              << kernel.explanation << "\nsteps\n"
              << kernel.schedule.to_string() << "\nloops\n"
              << to_string(kernel.lowered.function) << "\n";
    if (!options.assembly.empty()) std::cout << "assembly\n" << kernel.assembly << "\n";
  }
  return 0;
}

}  // namespace tensmith::cli
