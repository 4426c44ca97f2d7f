#include "autotune/records/apply_record.h"

namespace tensmith {

namespace {

/// Why the tensor does not lie as its surroundings expect, or "".
std::string layout_difference(const ScheduleState& state, const Tensor& tensor, const Layout& wanted) {
  const StageState& stage = state.stages[state.producer_of(tensor.buffer().get())];
  const Layout layout = stage.layout_of(tensor.output());
  const bool plain = wanted.dims().empty() || wanted.is_row_major();
  if (plain ? layout.is_row_major() : layout == wanted) return {};
  return "tensor " + tensor.buffer()->name + ": expected the layout " + (plain ? "row-major" : wanted.text()) +
         ", got " + layout.text();
}

}  // namespace

Result<Schedule> apply_record(const Workload& workload, const ScheduleRequest& request, const TuningRecord& record) {
  Result<Schedule> schedule = replay(workload, {record.key.workload, record.steps});
  if (!schedule) return schedule;
  const auto check = [&](const std::vector<Tensor>& tensors, const std::vector<Layout>& layouts) -> std::string {
    for (size_t k = 0; k < tensors.size(); ++k) {
      const Stage& stage = schedule->state().stages[schedule->state().producer_of(tensors[k].buffer().get())].stage;
      // Constants are packed as the schedule asks.
      if (stage->is_constant) continue;
      const std::string wrong =
          layout_difference(schedule->state(), tensors[k], k < layouts.size() ? layouts[k] : Layout());
      if (!wrong.empty()) return wrong;
    }
    return {};
  };
  for (const auto& [tensors, layouts] :
       {std::pair{&workload.inputs, &request.input_layouts}, std::pair{&workload.outputs, &request.output_layouts}})
    if (const std::string wrong = check(*tensors, *layouts); !wrong.empty()) return Failure{"record-layout", wrong};
  return schedule;
}

}  // namespace tensmith
