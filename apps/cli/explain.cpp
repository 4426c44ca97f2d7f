#include <iostream>

#include "apps/cli/commands.h"
#include "apps/cli/explanations.h"
#include "runtime/base/error.h"

namespace tensmith::cli {

int explain(const Options& options) {
  if (options.id.empty()) {
    for (const Explanation& e : explanations()) std::cout << e.id << "\n";
    return 0;
  }
  for (const Explanation& e : explanations())
    if (options.id == e.id) {
      std::cout << e.id << "\n  means:   " << e.meaning << "\n  way out: " << e.way_out << "\n";
      return 0;
    }
  throw UserError("unknown-error-id", "explain " + options.id + ": expected an error id, got '" + options.id +
                                          "'; run `tensmith explain` for the list");
}

}  // namespace tensmith::cli
