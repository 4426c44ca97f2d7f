/// Which build of the tool this is, as far as records of tuning are concerned.
#pragma once

namespace tensmith {

/// A digest of the sources that decide what a record means: tensor, schedule, codegen, the default schedules, and the
/// version of LLVM. Comments and white space do not count; neither do the search, the measuring and the graph: what a
/// workload is stands in the record itself. 12 hexadecimal digits.
const char* build_id();

}  // namespace tensmith
