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

/// The same for copies of operands: every piece reads them, so they may push out what passes by.
inline int64_t near_copy_bytes(const Target& target) { return 2 * near_bytes(target); }

struct InsidePlace {
  std::string loop;
  bool rolling = false;  ///< what one iteration shares with the next is kept (rolling_buffer)
};

/// Whether the stage, or a stage that it reads element by element, is a product: every result is summed over elements
/// of two operands.
bool is_product(const ScheduleDraft& draft, const std::string& stage);

/// Loops of `root` at which `stage` may be computed by the steps so far, outermost first.
std::vector<std::string> places_in(const ScheduleDraft& draft, const std::string& root, const std::string& stage);

/// Whether a product lies behind the stage: it is one, or reads one, perhaps through other stages.
bool leads_from_product(const ScheduleDraft& draft, const std::string& stage);

/// A place whose piece is within `room` bytes while nothing is computed twice (but a little, at the edges of what
/// threads share out): the outermost one whose piece fits L1, else, or when the root itself reads the stage, the
/// outermost. What one iteration shares with the next may be kept if `may_roll`. Nothing when there is none. Cost: some
/// lowerings.
std::optional<InsidePlace> choose_inside_place(const ScheduleDraft& draft, const std::string& root,
                                               const std::string& stage, const std::vector<std::string>& places,
                                               int64_t room, bool may_roll);

/// How far the part of the stage that one iteration of the root's loop needs extends along each of its axes; empty when
/// that is not known.
std::vector<int64_t> piece_of(const ScheduleDraft& draft, const std::string& root, const std::string& stage,
                              const std::string& loop);

/// Whether lowering accepts the schedule. Cost: a lowering.
bool can_lower(const Schedule& schedule);

/// Whether the stage, computed at its loop by now, can keep what its iterations share. Cost: a lowering.
bool can_roll(const Schedule& schedule, const std::string& stage);

}  // namespace tensmith
