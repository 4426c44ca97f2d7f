/// How a function of loop IR says which of its buffers may be the same memory.
#pragma once

namespace tensmith {

/// Attribute of a LoopFunction: a bit for each of its first 62 buffers that may be the same memory as the others of the
/// set. An element of one of them is then read for the last time before it is written through another one, which the
/// compiler of a kernel has to know (in-place results); all other buffers that are written overlap nothing.
inline constexpr const char* kMayOverlap = "may_overlap";

}  // namespace tensmith
