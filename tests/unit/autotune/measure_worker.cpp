// A worker as `tensmith worker --stdio` is one, without the rest of the tool.
#include "autotune/measure/worker.h"

int main() { return tensmith::serve_worker({}); }
