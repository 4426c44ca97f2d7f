/// Reproducers of failures, as the sub-commands leave them.
#pragma once

#include <string>

#include "apps/cli/options.h"
#include "apps/driver/reproducer.h"

namespace tensmith::cli {

/// Writes the files with the command line, version and machine added, into the folder of the switch `repro`, else into
/// a new temporary one. Returns words for the message: where it lies, or why it could not be written.
std::string save_reproducer(const Options& options, ReproducerFiles files);

}  // namespace tensmith::cli
