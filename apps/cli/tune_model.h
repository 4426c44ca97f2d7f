/// The model that is tuned, in the programs that a tuning run compares.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "apps/cli/model.h"
#include "apps/driver/in_model.h"

namespace tensmith::cli {

/// The target of `tune`: a model, or a single operator. `records`: as in load_model.
LoadedModel load_tuned(const Options& options, std::shared_ptr<const RecordIndex> records = nullptr);

/// One side of a comparison: an instance of a loaded model, which has run once on the inputs of the command line.
InModelSide side_of(const LoadedModel& model, const Options& options);

/// How many programs like that may be loaded beside it: each has weights of its own.
size_t programs_at_once(const LoadedModel& model);

/// Told what goes on; returns false when the user has enough.
using WholeListener = std::function<bool(const std::string&)>;
/// For InModelLimits::go_on: tells of rounds as they go by.
std::function<bool(size_t, double)> told_of(const std::string& what, const WholeListener& listener);

}  // namespace tensmith::cli
