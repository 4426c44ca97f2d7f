#include <nlohmann/json.hpp>

#include <chrono>
#include <iostream>

#include "apps/cli/commands.h"
#include "apps/cli/model.h"
#include "runtime/profiler.h"
#include "runtime/trace.h"

namespace tensmith::cli {

int profile(const Options& options) {
  std::map<std::string, HostTensor> arrays = read_arrays(options);
  const LoadedModel model = load_model(options, arrays);
  std::vector<HostTensor> inputs = make_inputs(model, options, std::move(arrays));
  Instance instance = make_instance(*model.module, options);
  std::vector<HostTensor> outputs = take(instance.run(inputs));
  const std::unique_ptr<Profiler> profiler = instance.make_profiler();
  instance.set_profiler(profiler.get());
  take(instance.run_into(inputs, outputs));
  profiler->reset();
  for (int round = 0; round < options.rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    take(instance.run_into(inputs, outputs));
    profiler->add_run(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count());
  }
  instance.set_profiler(nullptr);
  const Provenance from = provenance("tensmith.profile/1", options, model, instance.threads());
  if (options.json) std::cout << json_text(profiler->json(from));
  else std::cout << profiler->table();
  if (!options.trace.empty()) {
    Trace trace;
    profiler->add_to(trace);
    take(write_json(options.trace, trace.chrome_json(from)));
  }
  return 0;
}

}  // namespace tensmith::cli
