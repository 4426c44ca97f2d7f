/// Compares every kernel of a program with the reference interpreter on the data of one run: the switch `check`.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/model.h"
#include "apps/driver/reproducer.h"

namespace tensmith::cli {

struct KernelCheckReport {
  int checked = 0;
  int wrong = 0;
  int skipped = 0;        ///< kernels whose nodes cannot be interpreted alone
  std::string text;       ///< the kernels that differ, first ones first
  ReproducerFiles files;  ///< of the first kernel that differs
};

/// Runs the program once. Each kernel gets what the compiled kernels before it gave, so that one fault does not show in
/// all that follow. The model must have been compiled with KernelCall::reference. Cost: about that of the interpreter.
KernelCheckReport check_kernels(const LoadedModel& model, Instance& instance, const Options& options,
                                std::vector<HostTensor>& inputs);

/// Does so when the switch `check` is on; the report goes to stderr. Errors: `kernel-differs` (exit code 4);
/// `check-needs-model` for a library.
void check_if_asked(const LoadedModel& model, Instance& instance, const Options& options,
                    std::vector<HostTensor>& inputs);

}  // namespace tensmith::cli
