/// Where in the loops of a stage another one that feeds it is computed piece by piece, so that what lies between them
/// stays in a near cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "autotune/schedule_rules.h"

namespace tensmith {

/// Units: bytes. What lies between two stages stays near up to this size; the rest of L2 is for what passes by.
inline int64_t near_bytes(const Target& target) { return target.l2_bytes / 4; }

struct InsidePlace {
  std::string loop;
  bool rolling = false;  ///< what one iteration shares with the next is kept (rolling_buffer)
};

/// Whether the stage, or a stage that it reads element by element, is a product: every result is summed over elements
/// of two operands.
bool is_product(const ScheduleDraft& draft, const std::string& stage);

/// Loops of `root` at which `stage` may be computed by the steps so far, outermost first.
std::vector<std::string> places_in(const ScheduleDraft& draft, const std::string& root, const std::string& stage);

/// The outermost of the places whose piece is within near_bytes while nothing is computed twice (but a little, at
/// the edges of what threads share out); nothing when there is none, or when the stage is no work that is worth it:
/// `stage` or what only it reads is a reduction over elements that all differ (a product). Cost: some lowerings.
std::optional<InsidePlace> choose_inside_place(const ScheduleDraft& draft, const std::string& root,
                                               const std::string& stage, const std::vector<std::string>& places);

/// Whether lowering accepts the schedule. Cost: a lowering.
bool can_lower(const Schedule& schedule);

/// Whether the stage, computed at its loop by now, can keep what its iterations share. Cost: a lowering.
bool can_roll(const Schedule& schedule, const std::string& stage);

}  // namespace tensmith
