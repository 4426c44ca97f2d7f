#include "autotune/default_schedule.h"

#include "autotune/space/rules.h"

namespace tensmith {

Schedule plain_schedule(const Workload& workload, const ScheduleRequest& request) {
  ScheduleDraft draft(workload, request);
  return std::move(draft.schedule);
}

Schedule default_schedule(const Workload& workload, const ScheduleRequest& request, std::string* explanation) {
  ScheduleDraft draft(workload, request);
  apply_rules(draft, built_in_rules());
  if (explanation) *explanation = draft.explanation;
  return std::move(draft.schedule);
}

}  // namespace tensmith
