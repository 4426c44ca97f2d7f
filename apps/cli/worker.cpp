#include "autotune/measure/worker.h"

#include "apps/cli/commands.h"
#include "runtime/base/error.h"

namespace tensmith::cli {

int worker(const Options& options) {
  TS_USER_CHECK(options.stdio, "bad-usage") << "worker: expected --stdio, got no connection; whatever starts a worker "
                                               "gives it --stdio and talks to it line by line";
  return serve_worker({});
}

}  // namespace tensmith::cli
