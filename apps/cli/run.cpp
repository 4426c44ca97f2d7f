#include <algorithm>
#include <filesystem>
#include <iostream>
#include <numeric>

#include "apps/cli/commands.h"
#include "apps/cli/compare.h"
#include "apps/cli/kernel_check.h"
#include "apps/cli/model.h"
#include "runtime/npy.h"

namespace tensmith::cli {

int run(const Options& options) {
  for (const auto& [name, value] : parse_assignments(options.outputs, "--output"))
    if (value.size() > 1 && value[0] == '@') check_writable("--output", value.substr(1));
  std::map<std::string, HostTensor> arrays = read_arrays(options);
  TS_USER_CHECK(!options.interpret || !is_library(options.model), "bad-usage")
      << "--interpret: expected a model, got the library " << options.model << ", which has no graph";
  const LoadedModel model = load_model(options, arrays, /*keep_graph=*/options.interpret);
  std::vector<HostTensor> inputs = make_inputs(model, options, std::move(arrays));
  const tensmith_model& description = model.module->model();
  const std::map<std::string, std::string> wanted = parse_assignments(options.outputs, "--output");
  for (const auto& [name, value] : wanted) {
    bool known = false;
    for (int32_t k = 0; k < description.num_outputs; ++k) known = known || name == description.outputs[k].name;
    TS_USER_CHECK(known, "unknown-output") << "--output " << name << ": expected an output of the model, the first is '"
                                           << description.outputs[0].name << "'";
    TS_USER_CHECK(value.size() > 1 && value[0] == '@', "bad-output")
        << "--output " << name << "=" << value << ": expected NAME=@FILE.npy";
  }
  std::vector<HostTensor> outputs;
  if (options.interpret) {
    outputs = exact_outputs(*model.graph, inputs);
  } else {
    Instance instance = make_instance(*model.module, options);
    check_if_asked(model, instance, options, inputs);
    const RunProfile profile(instance);
    outputs = take(instance.run(inputs));
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    const std::string name = description.outputs[k].name;
    std::cout << name << ": " << to_string(outputs[k].dtype()) << "[";
    for (size_t d = 0; d < outputs[k].shape().size(); ++d) std::cout << (d ? ", " : "") << outputs[k].shape()[d];
    std::cout << "]\n";
    if (options.print_top > 0) {
      std::vector<int64_t> order(outputs[k].size());
      std::iota(order.begin(), order.end(), int64_t{0});
      const int64_t shown = std::min<int64_t>(options.print_top, outputs[k].size());
      std::partial_sort(order.begin(), order.begin() + shown, order.end(),
                        [&](int64_t a, int64_t b) { return outputs[k].get(a) > outputs[k].get(b); });
      for (int64_t i = 0; i < shown; ++i) std::cout << "  [" << order[i] << "] " << outputs[k].get(order[i]) << "\n";
    }
    if (const auto file = wanted.find(name); file != wanted.end()) take(write_npy(file->second.substr(1), outputs[k]));
  }
  return 0;
}

}  // namespace tensmith::cli
