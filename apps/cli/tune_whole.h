/// The end of a tuning run: what was found is judged in runs of the whole model.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/tune_model.h"
#include "apps/driver/trials.h"
#include "autotune/search/tuner.h"

namespace tensmith::cli {

/// How long judge_in_whole and compare_whole are going to take for a model that took so long to load. Units: seconds.
double whole_seconds(const LoadedModel& usual);

/// Times the best schedules of each task where they stand, in programs that run in turns: the default's, one with the
/// best of each task, one with the second best ... What does not hold up there falls back to another of them or to the
/// default. `choices`: with which `usual` was compiled. Writes the verdicts into the file of records and
/// TaskProgress::in_model. Returns a line that tells of it. When the listener ends it, nothing is written: winners
/// stand as they were compared alone.
std::string judge_in_whole(const Options& options, const LoadedModel& usual, const RecordIndex& choices,
                           const std::vector<TuningTask>& tasks, const RecordOrigin& origin, double most_seconds,
                           RecordStore& store, TuningReport& report, const WholeListener& listener);

/// The whole model with and without the records, in turns: a line. Without a tuned kernel there is nothing to compare.
/// Of this and of judge_in_whole `most_seconds` is what their runs may take, 0: as long as a sound comparison needs.
/// When the listener ended it, the line is empty.
std::string compare_whole(const Options& options, const LoadedModel& usual, double most_seconds,
                          const WholeListener& listener);

}  // namespace tensmith::cli
