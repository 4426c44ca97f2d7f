#include <iostream>

#include "apps/cli/commands.h"
#include "apps/cli/explanations.h"
#include "runtime/base/config.h"
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
  std::vector<std::string> ids;
  for (const Explanation& e : explanations()) ids.push_back(e.id);
  const std::string near = nearest_word(options.id, ids);
  throw UserError("unknown-error-id", "explain " + options.id + ": expected an error id, got '" + options.id + "'" +
                                          (near.empty() ? "" : "; did you mean '" + near + "'?") +
                                          "; tensmith explain lists them");
}

}  // namespace tensmith::cli
