/// The sub-commands. Each prints to stdout and returns the exit code; errors leave as exceptions.
#pragma once

#include "apps/cli/options.h"

namespace tensmith::cli {

int check(const Options& options);
int compile(const Options& options);
int run(const Options& options);
int verify(const Options& options);
int bench(const Options& options);
int profile(const Options& options);
int inspect(const Options& options);
int explain(const Options& options);
int target(const Options& options);
int worker(const Options& options);
int tune(const Options& options);
int records(const Options& options);
int report(const Options& options);

}  // namespace tensmith::cli
