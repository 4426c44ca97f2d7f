/// What records of other tasks say to a tuning run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autotune/cost_model/cost_model.h"
#include "autotune/records/record.h"
#include "autotune/search/carry_over.h"
#include "autotune/search/tuner.h"

namespace tensmith {

struct KnownRecords {
  std::vector<CostSample> samples;  ///< for the cost model
  std::vector<KnownGood> good;      ///< for first candidates
};

/// Reads files of records. `output`: the file that the run itself goes on with (it may not exist yet), where the run's
/// own tasks are passed over: what is known of them comes back as the search comes by it. Of `others` all winners
/// count, but of the run's own tasks no samples. Records of other machines and versions of the tool are passed over;
/// those of other builds of this version are taken. `here`: of measurements for a target in this run. Errors:
/// cannot-read.
Result<KnownRecords> known_records(const std::string& output, const std::vector<std::string>& others,
                                   const std::vector<TuningTask>& tasks,
                                   const std::function<RecordOrigin(const Target&)>& here);

}  // namespace tensmith
