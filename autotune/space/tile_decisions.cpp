#include "autotune/space/tile_decisions.h"

#include <algorithm>
#include <map>
#include "tensor/walk.h"

namespace tensmith {

namespace {

// Copies of the multiply-adds of one step that unrolling may make: beyond that the code leaves the decoded cache.
constexpr int64_t kMostCopies = 1024;
// Of a size that is known only at run time every remainder of the rows gets a body of its own: so many statements are
// left for all of them.
constexpr int64_t kMostCopiesOfOpenSize = 800;
// Steps of a long reduction written out behind each other: 48 products of 128 to 1,024 rows gained 2 to 6 % from four,
// those over 3,072 steps 2 % more from eight. Pieces of 16 steps gain as much (1x1 over 2,048 channels of 7x7 pixels:
// 0.90 to 0.94).
constexpr int64_t kStepsATurn = 4, kTurns = 4;

// Steps of a sum that go into one accumulator, and the most pieces. With AVX-512 and 28 accumulators a piece costs 50
// cycles: 0.5 to 1 % of products over 768 steps. 1x1 convolutions over 576 channels lose half of their rounding error
// and are as exact as those of ONNX Runtime (pieces of 128); all of MobileNetV3-small was 1.7 times as inexact as
// there, and is 1.05.
constexpr int64_t kMostStepsOfPiece = 384, kLeastStepsOfPiece = 96, kMostPieces = 6;

bool has_open_size(const StageNode& stage) {
  int64_t known;
  return std::any_of(stage.axes.begin(), stage.axes.end(),
                     [&](const Axis& a) { return !as_const_int(a.extent, &known); });
}

/// Whether tiles of so many rows and vectors, `steps` of the reduction unrolled, stay within bounds with all their
/// remainders.
bool remainders_fit(const StageNode& stage, int64_t rows, int64_t vectors, int64_t steps) {
  return !has_open_size(stage) || rows * rows / 2 * vectors * steps <= kMostCopiesOfOpenSize;
}

/// The tile among those with `vectors` vectors, or all of them, that the model finds cheapest.
double least_cycles(const std::vector<RegisterTile>& tiles, int vectors) {
  double least = 0;
  for (const RegisterTile& tile : tiles)
    if (tile.vectors == vectors && (least == 0 || tile.cycles < least)) least = tile.cycles;
  return least;
}

void decide_size(ScheduleDraft& draft, const std::string& reduction, TilePlan& plan) {
  TileProblem problem = plan.problem;
  if (plan.outer_row_axis >= 0) {
    const RegisterTile alone = choose_register_tile(problem, draft.target());
    const double several = plan.tile.cycles / static_cast<double>(plan.outer_rows);
    if (draft.decide_yes(reduction, "tile.whole_rows", true, std::max(1.05, alone.cycles / std::max(1.0, several)))) {
      problem.row_multiple = plan.rows;
      problem.rows = plan.rows * ScheduleDraft::size_of(draft.stage(reduction).stage->axes[plan.outer_row_dim].extent);
    } else {
      plan.outer_row_axis = plan.outer_row_dim = -1;
      plan.outer_rows = 1;
      plan.problem.line_rows = problem.line_rows = 0;
      plan.tile = alone;
    }
  }
  const std::vector<RegisterTile> tiles = register_tiles(problem, draft.target());
  if (tiles.empty()) return;
  const RegisterTile preferred = plan.tile;
  Question vectors(reduction, "tile.vectors");
  for (const RegisterTile& tile : tiles) vectors.offer(int64_t{tile.vectors}, least_cycles(tiles, tile.vectors));
  const int64_t columns = draft.decide_number(std::move(vectors.prefer(int64_t{preferred.vectors})));
  Question rows(reduction, "tile.rows");
  RegisterTile best;
  for (const RegisterTile& tile : tiles) {
    if (tile.vectors != columns) continue;
    // Short reductions are unrolled whole.
    const int64_t steps = plan.steps <= 25 ? plan.steps : 1;
    if (tile.rows > problem.row_multiple && !remainders_fit(*draft.stage(reduction).stage, tile.rows, columns, steps))
      continue;
    rows.offer(int64_t{tile.rows}, tile.cycles);
    if (best.cycles == 0 || tile.cycles < best.cycles) best = tile;
  }
  if (columns == preferred.vectors) rows.prefer(int64_t{preferred.rows});
  const int64_t count = draft.decide_number(std::move(rows));
  if (columns == preferred.vectors && count == preferred.rows) return;
  for (const RegisterTile& tile : tiles)
    if (tile.vectors == columns && tile.rows == count) {
      plan.tile = tile;
      if (plan.outer_row_axis >= 0) plan.outer_rows = tile.rows / plan.rows;
    }
}

/// Pieces of the reduction's longest axis: each is walked whole, the other axes around it, before the next one.
void decide_piece(ScheduleDraft& draft, const std::string& reduction, TilePlan& plan) {
  const Stage body = draft.effective(reduction);
  if (body->reduce_axes.size() < 2) return;
  int axis = plan.piece ? plan.piece->axis : 0;
  int64_t extent = 0;
  for (size_t a = 0; a < body->reduce_axes.size() && !plan.piece; ++a) {
    int64_t size;
    if (!as_const_int(body->reduce_axes[a].extent, &size) || size <= extent) continue;
    extent = size;
    axis = static_cast<int>(a);
  }
  if (!as_const_int(body->reduce_axes[axis].extent, &extent)) return;
  Question question(reduction, "tile.piece");
  question.offer(int64_t{0}, 1.1);
  // Only whole pieces: a shorter last one would be a second copy of the tile's code.
  for (int64_t length : {8, 16, 32, 64, 128})
    if (extent % length == 0 && length < extent) question.offer(length, 1.1);
  const int64_t length = draft.decide_number(std::move(question.prefer(plan.piece ? plan.piece->length : int64_t{0})));
  if (length == 0) plan.piece.reset();
  else plan.piece = ReducePiece{axis, length};
}

/// A constant that the vectors find in order as it stands need not be packed.
void decide_packing(ScheduleDraft& draft, const std::string& reduction, TilePlan& plan) {
  const Stage body = draft.effective(reduction);
  const Var v = body->axes[plan.vector_dim].var;
  std::vector<std::string> packed;
  for (const std::string& constant : plan.constants) {
    bool in_order = true;
    for (const TensorAccess& access : accesses_of(draft.schedule.state(), *body))
      if (draft.schedule.state().stages[access.producer].name == constant)
        in_order = in_order && stride_of(draft.schedule.state(), access, *body, v) == std::optional<int64_t>(1);
    if (!in_order || draft.decide_yes(reduction, "pack." + constant, true, 1.1)) packed.push_back(constant);
  }
  plan.constants = packed;
}

/// Whether a dimension of the results moves an operand along the same way as the loop does (pixels and taps).
bool rows_slide(const ScheduleDraft& draft, const std::string& reduction, const std::string& loop) {
  const StageState& r = draft.stage(reduction);
  const Stage body = draft.effective(reduction);
  for (size_t a = 0; a < r.reduce_loops.size(); ++a) {
    if (!r.comes_from(r.find_loop(loop), r.reduce_loops[a])) continue;
    const Var& tap = body->reduce_axes[a].var;
    for (const TensorAccess& access : accesses_of(draft.schedule.state(), *body))
      for (const Expr& index : access.indices)
        if (uses_var(index, tap) && std::any_of(body->axes.begin(), body->axes.end(),
                                                [&](const Axis& axis) { return uses_var(index, axis.var); }))
          return true;
  }
  return false;
}

}  // namespace

void decide_tile(ScheduleDraft& draft, const std::string& reduction, TilePlan& plan) {
  decide_size(draft, reduction, plan);
  decide_piece(draft, reduction, plan);
  decide_packing(draft, reduction, plan);
}

TileOrder decide_tile_order(ScheduleDraft& draft, const std::string& reduction, const TileTraffic& traffic) {
  TileOrder order = choose_tile_order(traffic, draft.target());
  if (traffic.vector_tiles == 1 && traffic.max_row_blocks == 1) return order;
  const std::string rows = "rows", vectors = "vectors";
  Question outside(reduction, "tile.outside");
  outside.offer(rows, 1.2).offer(vectors, 1.2).prefer(order.vectors_outside ? vectors : rows);
  const bool vectors_outside = draft.decide_word(std::move(outside)) == vectors;
  if (vectors_outside != order.vectors_outside) {
    order.vectors_outside = vectors_outside;
    order.row_blocks = 1;
  }
  if (!vectors_outside) return order;
  Question blocks(reduction, "tile.row_blocks");
  const int64_t most = has_open_size(*draft.stage(reduction).stage) ? 1 : std::min<int64_t>(traffic.max_row_blocks, 64);
  for (int64_t count = 1; count <= most; count *= 2) blocks.offer(count, 1.1);
  order.row_blocks = draft.decide_number(std::move(blocks.prefer(order.row_blocks)));
  return order;
}

int64_t decide_chunk(ScheduleDraft& draft, const std::string& reduction, int64_t preferred, int64_t tiles) {
  Question question(reduction, "tile.chunk");
  for (int64_t count = 1; count < tiles; count *= 2) question.offer(count, 1.2);
  question.offer(tiles, 1.2);
  return draft.decide_number(std::move(question.prefer(std::min(preferred, tiles))));
}

void decide_innermost_reduction(ScheduleDraft& draft, const std::string& reduction,
                                std::vector<std::pair<double, int>>& order) {
  if (order.size() < 2) return;
  const Stage body = draft.effective(reduction);
  Question question(reduction, "tile.innermost");
  for (const auto& [distance, axis] : order)
    if (ScheduleDraft::size_of(body->reduce_axes[axis].extent) > 1) question.offer(int64_t{axis}, 1.3);
  const int64_t axis = draft.decide_number(std::move(question.prefer(int64_t{order.back().second})));
  const auto chosen = std::find_if(order.begin(), order.end(), [&](const auto& item) { return item.second == axis; });
  std::rotate(chosen, chosen + 1, order.end());
}

bool decide_unroll(ScheduleDraft& draft, const std::string& reduction, const std::string& loop, int64_t extent,
                   const RegisterTile& tile, bool preferred) {
  int64_t copies = extent * tile.rows * tile.vectors;
  for (const ChosenPoint& chosen : draft.points)
    if (chosen.point.stage == reduction && chosen.point.what.rfind("unroll.", 0) == 0)
      if (const auto* yes = std::get_if<int64_t>(&chosen.value()); yes && *yes > 1) copies *= *yes;
  // A number rather than yes or no, so that the copies of the next loop can be counted: 1 is none.
  Question question(reduction, "unroll." + loop);
  question.offer(int64_t{1}, 1.1);
  const bool fits =
      copies <= kMostCopies && remainders_fit(*draft.stage(reduction).stage, tile.rows, 1, copies / tile.rows);
  if (preferred || fits) question.offer(extent, 1.1);
  return draft.decide_number(std::move(question.prefer(preferred ? extent : int64_t{1}))) > 1;
}

void decide_steps_a_turn(ScheduleDraft& draft, const std::string& reduction, const std::string& loop, int64_t extent,
                         const RegisterTile& tile) {
  const StageState& r = draft.stage(reduction);
  const int index = r.find_loop(loop);
  if (index < 0 || r.loops[index].kind != ForKind::kSerial || has_open_size(*r.stage)) return;
  int64_t copies = 1;  // of the loops that are unrolled already
  for (size_t a = 0; a < r.reduce_loops.size(); ++a)
    if (r.loops[r.reduce_loops[a]].kind == ForKind::kUnrolled)
      copies *= ScheduleDraft::size_of(r.stage->reduce_axes[a].extent);
  // With no register to spare loads that move up push accumulators out (14x8 of the 16 of AVX2), and so do values that
  // rows share with the next steps (29 rows over 256 taps: half of the loop were spills).
  const bool room = !rows_slide(draft, reduction, loop) &&
                    tile.rows * tile.vectors + tile.vectors + 1 < draft.target().vector_registers;
  Question question(reduction, "tile.steps_a_turn");
  question.offer(int64_t{1}, 1.05);
  int64_t preferred = 1;
  for (int64_t steps : {2, 4, 8})
    if (extent % steps == 0 && steps < extent && copies * steps * tile.rows * tile.vectors <= kMostCopies / 4) {
      question.offer(steps, 1.05);
      if (room && extent / steps >= kTurns && copies * steps <= kStepsATurn) preferred = steps;
    }
  const int64_t steps = draft.decide_number(std::move(question.prefer(preferred)));
  if (steps > 1) draft.schedule.pragma(reduction, loop, "unroll", steps);
}

void sum_in_pieces(ScheduleDraft& draft, const std::string& reduction) {
  const StageState& r = draft.stage(reduction);
  if (!r.stage->reducer || r.stage->reducer->name != "sum" || !r.stage->outputs[0]->dtype.is_float()) return;
  // Taps that conditions skip have several bodies, and the totals beside each made the register allocator spill: 3x3
  // from 128 to 128 channels at 28x28 fell from 0.97 of peak to 0.70.
  if (r.stage->where.get()) return;
  std::map<int, int64_t> extents;  // by reduction loop
  for (size_t a = 0; a < r.reduce_loops.size(); ++a) {
    int64_t known;
    if (!as_const_int(r.stage->reduce_axes[a].extent, &known)) return;
    extents[r.reduce_loops[a]] = known;
  }
  for (const LoopRelation& relation : r.relations) {
    if (!r.loops[relation.whole].is_reduce) continue;
    if (relation.kind != LoopRelation::Kind::kSplit || extents[relation.whole] % relation.factor != 0) return;
    extents[relation.outer] = extents[relation.whole] / relation.factor;
    extents[relation.inner] = relation.factor;
  }
  int64_t inside = 1;  // steps in one iteration of the outermost loop
  int outermost = -1, innermost = -1;
  for (int loop : r.order) {
    if (!r.loops[loop].is_reduce || extents[loop] == 1) continue;
    if (outermost < 0) outermost = loop;
    else inside *= extents[loop];
    innermost = loop;
  }
  if (outermost < 0 || r.loops[outermost].kind != ForKind::kSerial) return;
  const int64_t extent = extents[outermost];
  if (extent * inside <= kMostStepsOfPiece) return;
  const auto& attrs = r.loops[outermost].attrs;
  const auto unrolled = attrs.find("unroll");
  const int64_t multiple = outermost == innermost && unrolled != attrs.end() ? unrolled->second : 1;
  const int64_t most = std::max(kMostStepsOfPiece, extent * inside / kMostPieces);
  int64_t piece = 0;
  for (int64_t length = multiple; length < extent && length * inside <= most; length += multiple)
    if (extent % length == 0 && length * inside >= kLeastStepsOfPiece) piece = length;
  if (piece > 0) draft.schedule.pragma(reduction, r.loops[outermost].name, "piece", piece);
}

void decide_outermost(ScheduleDraft& draft, const std::string& reduction, const std::string& reader,
                      std::vector<std::string>& loops) {
  if (loops.size() < 2) return;
  const StageState& s = draft.stage(reader);
  Question question(reduction, "tile.outermost");
  for (const std::string& loop : loops)
    for (size_t a = 0; a < s.axis_loops.size(); ++a)
      if (s.loops[s.axis_loops[a]].name == loop && ScheduleDraft::size_of(s.stage->axes[a].extent) > 1)
        question.offer(loop, 1.2);
  const std::string first = draft.decide_word(std::move(question.prefer(loops.front())));
  const auto chosen = std::find(loops.begin(), loops.end(), first);
  std::rotate(loops.begin(), chosen, chosen + 1);
}

int64_t decide_prefetch(ScheduleDraft& draft, const std::string& reduction, int64_t preferred) {
  Question question(reduction, "prefetch");
  question.offer(int64_t{0}, 1.1);
  for (int64_t distance : {8, 16, 32, 64}) question.offer(distance, 1.05);
  return draft.decide_number(std::move(question.prefer(preferred)));
}

}  // namespace tensmith
