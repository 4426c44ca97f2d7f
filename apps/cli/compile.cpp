#include <filesystem>
#include <future>
#include <iostream>

#include "apps/cli/commands.h"
#include "apps/cli/model.h"
#include "apps/driver/tuned.h"
#include "runtime/base/files.h"
#include "runtime/base/sha256.h"

namespace tensmith::cli {

int compile(const Options& options) {
  const std::string suffix = std::filesystem::path(options.output).extension().string();
  TS_USER_CHECK(suffix == ".so" || suffix == ".a" || suffix == ".o", "bad-output-suffix")
      << "-o " << options.output << ": expected a name that ends in .so, .a or .o, got '" << suffix << "'";
  const auto folder = std::filesystem::path(options.output).parent_path();
  TS_USER_CHECK(folder.empty() || std::filesystem::is_directory(folder), "cannot-write")
      << "-o " << options.output << ": expected an existing folder, got '" << folder.string() << "'; make it first";
  // Found out now, not after minutes of compiling: a probe that leaves nothing behind.
  if (const Result<AtomicFile> probe = AtomicFile::create(options.output); !probe)
    throw UserError(probe.failure().id, probe.failure().message);
  std::future<Result<std::string>> digest = std::async(sha256_file, options.model);
  graph::Graph graph = import_model(options).take();
  check_dims_known(graph);
  CompileOptions compile = compile_options(options);
  compile.prefix = prefix_for(options.output);
  CompiledProgram program = compile_graph(graph, compile);
  graph = {};  // its weights are the program's now, which lets go of each that it has written
  program.model_digest = take(digest.get());
  if (!options.records.empty()) std::cerr << tuning_summary(program) << "\n";
  ExportOptions target;
  target.path = options.output;
  target.weights = options.weights == "embed"  ? WeightsHome::kEmbed
                   : options.weights == "file" ? WeightsHome::kFile
                                               : WeightsHome::kAuto;
  const ExportResult result = export_last(program, target);
  std::string plain;
  for (const CompiledKernel& kernel : program.kernels)
    if (kernel.is_plain) plain += (plain.empty() ? "" : ", ") + kernel.name + " (" + kernel.first_node + ")";
  std::cout << result.library << ": " << counted(program.kernels.size(), "kernel") << ", "
            << counted(program.calls.size(), "call") << ", " << static_cast<double>(program.stats.weight_bytes) / 1e6
            << " MB of weights, " << static_cast<double>(program.arena_bytes) / 1e6 << " MB arena (at least "
            << static_cast<double>(program.stats.arena_lower_bound) / 1e6 << "), for " << to_string(program.target)
            << ", " << counted(static_cast<size_t>(program.threads), "thread") << ", compiled in "
            << program.stats.total_ms << " ms\n";
  std::cout << result.header << "\n" << result.manifest << "\n";
  if (!result.weights.empty()) std::cout << result.weights << "\n";
  if (!plain.empty())
    std::cout << "slow: the default schedule of these kernels failed, which is our fault; they run as plain loops: "
              << plain << "; inspect --schedule NAME tells why\n";
  return 0;
}

}  // namespace tensmith::cli
