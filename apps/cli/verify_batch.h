/// `verify --batch LIST.json --json OUT.jsonl`: many models in one process (protocol: tests/harness/batch.py).
#pragma once

#include "apps/cli/options.h"

namespace tensmith::cli {

int verify_batch(const Options& options);

}  // namespace tensmith::cli
