#include "apps/driver/tuning_tasks.h"

#include <algorithm>
#include <cctype>

namespace tensmith {

std::string tuning_label(const CompiledKernel& kernel) {
  std::string label;
  size_t shown = 0;
  for (const std::string& op : kernel.ops) {
    if (shown++ == 3) {
      label += "+...";
      break;
    }
    std::string word = op.substr(op.find_last_of('.') + 1);
    std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
    label += (label.empty() ? "" : "+") + word;
  }
  const auto& outputs = kernel.schedule.state().outputs;
  std::string shape;
  if (!outputs.empty())
    for (const Expr& extent : outputs[0]->shape) {
      int64_t value = 0;
      shape += (shape.empty() ? "" : "x") + (as_const_int(extent, &value) ? std::to_string(value) : std::string("?"));
    }
  return label + " " + shape;
}

std::vector<TuningTask> tuning_tasks(const CompiledProgram& program, bool fast_math, bool contract_fma) {
  std::vector<TuningTask> tasks;
  // Weights that a whole run passes over push each other out of the caches.
  const int64_t cold_bytes = program.weights ? program.weights->size() : 0;
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    const CompiledKernel& kernel = program.kernels[k];
    TuningTask task{kernel.schedule.workload(),
                    kernel.request,
                    tuning_label(kernel),
                    0,
                    kernel.cost.flops,
                    kernel.cost.bytes,
                    cold_bytes,
                    fast_math,
                    contract_fma};
    for (const KernelCall& call : program.calls) task.weight += call.kernel == static_cast<int>(k);
    tasks.push_back(std::move(task));
  }
  return tasks;
}

}  // namespace tensmith
