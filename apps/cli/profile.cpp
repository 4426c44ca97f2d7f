#include <nlohmann/json.hpp>

#include <iostream>
#include <optional>

#include "apps/cli/bounds.h"
#include "apps/cli/commands.h"
#include "apps/cli/kernel_check.h"
#include "apps/cli/model.h"
#include "runtime/profiler.h"
#include "runtime/time_line.h"
#include "runtime/timer.h"

namespace tensmith::cli {

int profile(const Options& options) {
  check_writable("--trace", options.trace);
  TS_USER_CHECK(!options.bound || !is_library(options.model), "bad-usage")
      << "--bound: expected a model, got the library " << options.model << ", which tells less of its kernels";
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
  std::optional<MachineMeter> meter;
  if (options.bound) meter.emplace(model.program->target, instance.threads(), model.program->stats.weight_bytes);
  std::vector<RunBesidePeak> runs;
  for (int round = 0; round < options.rounds; ++round) {
    double peak = 0;
    if (meter) {
      peak = meter->window();
      instance.set_profiler(nullptr);  // the window cooled the caches
      take(instance.run_into(inputs, outputs));
      instance.set_profiler(profiler.get());
    }
    const Timer timer;
    take(instance.run_into(inputs, outputs));
    runs.push_back({timer.us(), peak});
  }
  instance.set_profiler(nullptr);
  if (TimeLine* line = process_time_line()) profiler->add_to(*line);
  const Provenance from = provenance("tensmith.profile/1", options, model, instance.threads());
  Json json = profiler->json(from);
  if (meter) {
    const GapReport report = gap_report(*model.program, *profiler, meter->rates(), runs);
    json["bounds"] = report.json();
    if (!options.json) std::cout << report.table();
  } else if (!options.json) {
    std::cout << profiler->table();
  }
  if (options.json) std::cout << json_text(json);
  if (!options.trace.empty()) {
    TimeLine trace;
    profiler->add_to(trace);
    take(write_json(options.trace, trace.chrome_json(from)));
  }
  return 0;
}

}  // namespace tensmith::cli
