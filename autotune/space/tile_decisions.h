/// What may be decided about a register tile, asked in the places where the tile's rule decides.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "autotune/cache_model.h"
#include "autotune/tile_plan.h"

namespace tensmith {

/// Decides of a plan: rows and vectors of the tile, whole rows of a second axis or not, pieces of the reduction,
/// constants packed or left as they stand where both is possible.
void decide_tile(ScheduleDraft& draft, const std::string& reduction, TilePlan& plan);

/// Decides the order of the loops around the tiles, and the blocks of rows.
TileOrder decide_tile_order(ScheduleDraft& draft, const std::string& reduction, const TileTraffic& traffic);

/// Decides how many tiles of columns one sweep over the rows takes.
int64_t decide_chunk(ScheduleDraft& draft, const std::string& reduction, int64_t preferred, int64_t tiles);

/// `order`: reduce axes as the rule would nest them, outermost first; decides which goes innermost.
void decide_innermost_reduction(ScheduleDraft& draft, const std::string& reduction,
                                std::vector<std::pair<double, int>>& order);

/// Decides whether a loop of the reduction is unrolled whole; `tile` accumulators are copied with it.
bool decide_unroll(ScheduleDraft& draft, const std::string& reduction, const std::string& loop, int64_t extent,
                   const RegisterTile& tile, bool preferred);

/// Decides how many steps of a serial reduction loop of that extent one turn makes.
void decide_steps_a_turn(ScheduleDraft& draft, const std::string& reduction, const std::string& loop, int64_t extent,
                         const RegisterTile& tile);

/// Has long sums of floats added up in pieces, each in accumulators of its own, whose totals are added. Not a decision:
/// it is there for accuracy. Called when the reduction's loops are in order and their steps a turn decided.
void sum_in_pieces(ScheduleDraft& draft, const std::string& reduction);

/// `loops` of the reader around its tiles, outermost first; decides which of them goes outermost.
void decide_outermost(ScheduleDraft& draft, const std::string& reduction, const std::string& reader,
                      std::vector<std::string>& loops);

/// Decides how many steps ahead constants are asked for; 0: never.
int64_t decide_prefetch(ScheduleDraft& draft, const std::string& reduction, int64_t preferred);

}  // namespace tensmith
