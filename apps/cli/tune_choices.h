/// The beginning of a tuning run: passes over the graph may go other ways than their estimates say, which shows in runs
/// of the whole model.
#pragma once

#include <memory>
#include <string>

#include "apps/cli/tune_model.h"
#include "autotune/records/record_index.h"

namespace tensmith::cli {

/// What was found.
struct ChosenWays {
  std::shared_ptr<RecordIndex> records;  ///< those of choices alone, to compile with
  bool any = false;                      ///< some way is not the estimate's
  std::string text;                      ///< tells of it; "" when there was nothing to choose
};

/// The ways that the file of records holds, without trying any.
ChosenWays chosen_before(const Options& options, const LoadedModel& usual);

/// Tries each way that no record of this machine has judged yet, some programs at a time in turns with the usual one:
/// a way is taken when the kernels that it changes take less time beyond noise, and hold that together with the other
/// ways taken in a second comparison. A program whose outputs differ is never taken. Writes a record for each way into
/// the file. Ends when the listener says so or after about `most_seconds` (0: when all are tried); what was not tried
/// is next time.
ChosenWays choose_ways(const Options& options, const LoadedModel& usual, const RecordOrigin& origin,
                       double most_seconds, const WholeListener& listener);

}  // namespace tensmith::cli
