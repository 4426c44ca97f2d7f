/// What a register tile over a reduction has to work on: which axes become rows and vectors, how operands are read, the
/// tile that follows. Internal to autotune/.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autotune/register_tile.h"
#include "autotune/schedule_rules.h"

namespace tensmith {

/// A reduce axis that is walked in pieces, as the layout stores it: the pieces outermost, what they hold innermost.
struct ReducePiece {
  int axis = -1;
  int64_t length = 1;
};

/// What is known of a reduction before anything is changed.
struct TilePlan {
  int vector_axis = -1, row_axis = -1;          ///< of the reading stage
  int vector_dim = -1, row_dim = -1;            ///< of the reduction
  int outer_row_axis = -1, outer_row_dim = -1;  ///< a second row axis: tiles of `outer_rows` whole rows of the first
  int64_t outer_rows = 1;
  int64_t rows = 1, columns = 1, steps = 1;
  TileProblem problem;
  RegisterTile tile;
  std::vector<std::string> constants;  ///< inputs to pack, indexed by the vector axis
  std::vector<std::string> to_copy;    ///< other operands that lie across the vector axis
  std::vector<std::string> to_turn;    ///< those of them that rows and vectors both index: turned as a whole before
  /// Of whole operands that only vectors, only rows, or both index.
  int64_t vector_operand_bytes = 0, row_operand_bytes = 0, element_operand_bytes = 0;
  int64_t constant_bytes = 0;  ///< of vector_operand_bytes, what is constant
  DType narrow = DType{};      ///< the type of such a constant that is widened for each tile of rows; else of no bits
  /// Units: elements of one column of the vector axis that a sweep over the row axis and the reduction reads of
  /// operands that rows and vectors both index (depthwise); 0 without such operands.
  int64_t window_elements = 0;
  /// Whether neighbouring blocks of the vector axis lie side by side in the stored output (channels-last), not whole
  /// planes apart (blocked channels).
  bool columns_adjacent = true;
  std::optional<ReducePiece> piece;
  int group_axis = -1;     ///< of the reading stage: the vector or the row axis, when what it reads changes by group of
  int64_t group_size = 0;  ///< so many values of it (grouped convolutions); tiles then stay within a group
  std::vector<int> batch_axes;  ///< axes of the reading stage along which the vector operands change (a batch, a group)
};

/// Units: elements of the vector axis. Of a tile: whole vectors, but of groups a piece that divides them, so that no
/// tile reaches from one group into the next.
int64_t block_of_columns(const TilePlan& plan);

/// Nothing when the accesses do not suit a register tile.
std::optional<TilePlan> plan_tile(const ScheduleDraft& draft, const std::string& reader, const std::string& reduction);

/// The reduce axes, outermost first, with minus the distance that a step along each goes in all operands that are not
/// packed (these follow whatever order is chosen): the one along which they are contiguous goes innermost.
std::vector<std::pair<double, int>> reduction_order(const ScheduleState& state, const StageNode& body,
                                                    const std::vector<std::string>& packed);

/// Packs a constant operand: blocks of the vector dimension outermost, then the other dims as the reduction walks them,
/// lanes innermost.
/// A dimension that the reduction walks in pieces is cut alike.
void pack_constant(ScheduleDraft& draft, const std::string& name, const std::string& reduction, const TilePlan& plan,
                   int64_t block);

}  // namespace tensmith
