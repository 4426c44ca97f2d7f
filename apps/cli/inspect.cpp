#include <nlohmann/json.hpp>

#include <iostream>

#include "apps/cli/commands.h"
#include "apps/cli/model.h"
#include "runtime/manifest.h"
#include "tensor/print.h"

namespace tensmith::cli {

namespace {

int inspect_library(const Options& options, const LoadedModel& model) {
  const tensmith_model& description = model.module->model();
  const Json manifest = take(parse_json(description.manifest));
  if (options.json) {
    std::cout << json_text(manifest);
    return 0;
  }
  std::cout << description.name << " by " << description.compiler << "\n";
  for (int32_t v = 0; v < description.num_variants; ++v)
    std::cout << "variant for " << description.variants[v].target << ": " << description.variants[v].num_kernels
              << " kernel calls, arena " << description.variants[v].arena_bytes << " bytes, weights "
              << description.variants[v].weights_bytes << " bytes\n";
  for (const Json& kernel : manifest["kernels"]) {
    const std::string name = kernel["name"];
    if (!options.schedule.empty() && name.find(options.schedule) == std::string::npos) continue;
    std::cout << name << " " << kernel["ops"].dump() << "\n";
    if (!options.schedule.empty()) std::cout << kernel["schedule"].get<std::string>();
  }
  return 0;
}

}  // namespace

int inspect(const Options& options) {
  if (is_library(options.model)) return inspect_library(options, load_model(options, {}));
  graph::Graph graph = import_model(options).take();
  CompileOptions compile = compile_options(options);
  compile.want_asm = !options.assembly.empty();
  compile.explain = true;
  const CompiledProgram program = compile_graph(graph, compile);
  if (options.json) {
    Json json = json_header({"tensmith.inspect/1", to_string(program.target), program.threads, 0, {}});
    json["arena_bytes"] = program.arena_bytes;
    json["arena_lower_bound"] = program.stats.arena_lower_bound;
    json["weight_bytes"] = program.stats.weight_bytes;
    Json kernels = Json::array();
    for (const CompiledKernel& kernel : program.kernels)
      kernels.push_back({{"name", kernel.name},
                         {"ops", kernel.ops},
                         {"first_node", kernel.first_node},
                         {"flops", kernel.flops},
                         {"bytes", kernel.bytes},
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
  const bool one = !options.schedule.empty() || !options.assembly.empty();
  bool found = false;
  for (const CompiledKernel& kernel : program.kernels) {
    const std::string& wanted = options.schedule.empty() ? options.assembly : options.schedule;
    if (one && kernel.name.find(wanted) == std::string::npos) continue;
    found = true;
    std::cout << kernel.name << " (" << kernel.first_node << ")\n";
    if (!one) continue;
    std::cout << "\nworkload\n"
              << to_text(kernel.schedule.workload()) << "\nwhy\n"
              << kernel.explanation << "\nsteps\n"
              << kernel.schedule.to_string() << "\nloops\n"
              << to_string(kernel.lowered.function) << "\n";
    if (!options.assembly.empty()) std::cout << "assembly\n" << kernel.assembly << "\n";
  }
  TS_USER_CHECK(found, "unknown-kernel") << "inspect " << options.model << ": no kernel's name contains '"
                                         << (options.schedule.empty() ? options.assembly : options.schedule)
                                         << "'; run inspect without --schedule and --asm to list them";
  return 0;
}

}  // namespace tensmith::cli
