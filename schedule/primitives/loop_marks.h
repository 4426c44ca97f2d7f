/// Numbers noted on loops (pragma, annotate): what keys there are, and where they go when loops are split and fused.
#pragma once

#include <optional>
#include <string>

#include "schedule/state.h"

namespace tensmith {

/// The keys that lowering and code generation read, as pragma's argument lists them.
const std::vector<std::string>& mark_keys();
/// A key of a loop: one of these, or note.NAME for whatever tools want. Errors: unknown-annotation.
Result<void> check_key(const std::string& key);
bool is_note(const std::string& key);
/// Errors: bad-annotation for a value below 1 under such a key.
Result<void> check_mark(const std::string& key, int64_t value);

/// The extent of a loop of the stage as a whole where it is a constant; none where it is symbolic.
std::optional<int64_t> constant_extent(const StageState& stage, int loop);

/// Hands the marks of a loop that was split on to its parts: what counts iterations (min_chunk, piece) to the outer
/// one, divided by `factor` and rounded up; `unroll`, which is of the body, to the inner one; all others to both.
void split_marks(StageState& stage, int whole, int outer, int inner, int64_t factor);
/// Hands the marks of two loops that were fused on to the result: what counts iterations of the outer one times the
/// extent of the inner one where that is constant; of `unroll` the inner one's; of all others under the same key the
/// outer one's. A key that only one of them has comes from that one.
void fuse_marks(StageState& stage, int outer, int inner, int fused);

}  // namespace tensmith
