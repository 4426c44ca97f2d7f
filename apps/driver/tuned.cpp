#include "apps/driver/tuned.h"

#include <algorithm>
#include <map>

#include "autotune/records/apply_record.h"

namespace tensmith {

std::optional<Schedule> recorded_schedule(KernelTask& task, const CompileOptions& options) {
  const RecordKey key = record_key(task.work.workload, task.request, {options.fast_math, options.contract_fma});
  const RecordFound found = options.records->best(key, origin_here(task.request.target), options.other_builds);
  task.info->tuning = found.reason;
  if (!found.record) return {};
  Result<Schedule> schedule = apply_record(task.work.workload, task.request, *found.record);
  if (schedule) return std::move(schedule).value();
  task.info->tuning = "refused: " + found.reason + ": " + schedule.failure().message;
  return {};
}

std::string tuning_summary(const CompiledProgram& program) {
  const std::vector<CompiledKernel>& kernels = program.kernels;
  size_t tuned = 0;
  std::map<std::string, int> reasons;
  for (const CompiledKernel& kernel : kernels) {
    if (kernel.is_tuned) ++tuned;
    else ++reasons[kernel.tuning.substr(0, kernel.tuning.find(':'))];
  }
  std::string text =
      "records: " + std::to_string(tuned) + " of " + std::to_string(kernels.size()) + " kernels as tuned";
  for (const auto& [reason, count] : reasons)
    text += (reason == reasons.begin()->first ? "; by default: " : ", ") + std::to_string(count) + " " + reason;
  const auto chosen = std::count_if(program.choices.list.begin(), program.choices.list.end(),
                                    [](const MadeChoice& choice) { return choice.is_tuned; });
  if (chosen > 0)
    text += "; " + std::to_string(chosen) + " of " + std::to_string(program.choices.list.size()) +
            " choices in the graph as tuned";
  return text + (reasons.empty() ? "" : " (--explain=tuning lists them)");
}

std::string tuning_list(const std::vector<const CompiledKernel*>& kernels) {
  std::string text;
  for (const CompiledKernel* kernel : kernels)
    text += kernel->name + " (" + kernel->first_node + "): " + (kernel->is_tuned ? "as tuned: " : "by default: ") +
            kernel->tuning + "\n";
  return text;
}

}  // namespace tensmith
