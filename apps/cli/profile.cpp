#include <nlohmann/json.hpp>

#include <iostream>

#include "apps/cli/commands.h"
#include "apps/cli/kernel_check.h"
#include "apps/cli/model.h"
#include "runtime/profiler.h"
#include "runtime/time_line.h"

namespace tensmith::cli {

int profile(const Options& options) {
  check_writable("--trace", options.trace);
  std::map<std::string, HostTensor> arrays = read_arrays(options);
  const LoadedModel model = load_model(options, arrays);
  std::vector<HostTensor> inputs = make_inputs(model, options, std::move(arrays));
  Instance instance = make_instance(*model.module, options);
  check_if_asked(model, instance, options, inputs);
  std::vector<HostTensor> outputs = take(instance.run(inputs));
  const std::unique_ptr<Profiler> profiler = instance.make_profiler();
  instance.set_profiler(profiler.get());
  take(instance.run_into(inputs, outputs));
  profiler->reset();
  for (int round = 0; round < options.rounds; ++round) {
    take(instance.run_into(inputs, outputs));
  }
  instance.set_profiler(nullptr);
  if (TimeLine* line = process_time_line()) profiler->add_to(*line);
  const Provenance from = provenance("tensmith.profile/1", options, model, instance.threads());
  if (options.json) std::cout << json_text(profiler->json(from));
  else std::cout << profiler->table();
  if (!options.trace.empty()) {
    TimeLine trace;
    profiler->add_to(trace);
    take(write_json(options.trace, trace.chrome_json(from)));
  }
  return 0;
}

}  // namespace tensmith::cli
