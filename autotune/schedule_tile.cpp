#include <algorithm>
#include <map>
#include <sstream>

#include "autotune/cache_model.h"
#include "autotune/inside_place.h"
#include "autotune/schedule_rules.h"
#include "autotune/space/tile_decisions.h"
#include "autotune/tile_plan.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

/// The steps that make a register tile of a reduction and its reader.
class Tiler {
 public:
  Tiler(ScheduleDraft& draft, const std::string& reader, const std::string& reduction, const TilePlan& plan)
      : draft_(draft),
        schedule_(draft.schedule),
        reader_(reader),
        reduction_(reduction),
        plan_(plan),
        lanes_(plan.problem.lanes),
        body_(draft.effective(reduction)),
        feeds_(reads_stages()),
        vec_(axis_name(reader, plan.vector_axis)),
        block_(block_of_columns(plan)) {}

  void run() {
    turn_wholes();
    order_reduction();
    cut_reader();
    order_reader();
    share_out();
    attach();
    unroll_reduction();
    prefetch_constants();
    decide_steps_a_turn(draft_, reduction_, reduce_loops_.back(), innermost_steps_, plan_.tile);
    sum_in_pieces(draft_, reduction_);
    explain();
  }

 private:
  /// The loop of an axis; of one that has groups, the loop within a group.
  std::string axis_name(const std::string& stage, int axis) const {
    const std::string& name = draft_.stage(stage).loops[draft_.stage(stage).axis_loops[axis]].name;
    return stage == reader_ && axis == plan_.group_axis ? name + ".w" : name;
  }
  int64_t size_of_axis(int axis) const {
    return axis == plan_.group_axis ? plan_.group_size : draft_.extent_of(draft_.stage(reader_), axis);
  }
  int64_t row_tiles() const {
    const int64_t all = plan_.outer_row_axis < 0 ? plan_.rows : plan_.rows * size_of_axis(plan_.outer_row_axis);
    return (all + plan_.tile.rows - 1) / plan_.tile.rows;
  }
  int64_t vector_tiles() const { return (plan_.columns + block_ - 1) / block_; }

  bool reads_stages() const {
    for (const TensorAccess& access : accesses_of(schedule_.state(), *body_)) {
      const StageState& s = schedule_.state().stages[static_cast<size_t>(access.producer)];
      if (s.attach == AttachKind::kRoot && s.stage->stage_kind == StageKind::kCompute &&
          leads_from_product(draft_, s.name))
        return true;
    }
    return false;
  }

  /// The reduction's own loops: the one along which operands are contiguous goes innermost.
  void order_reduction() {
    std::vector<std::pair<double, int>> order = reduction_order(schedule_.state(), *body_, plan_.constants);
    decide_innermost_reduction(draft_, reduction_, order);
    const StageState r = draft_.stage(reduction_);  // a copy: steps follow
    for (const auto& [distance, a] : order) {
      if (plan_.piece && plan_.piece->axis == a) continue;
      reduce_loops_.push_back(r.loops[r.reduce_loops[a]].name);
      innermost_steps_ = ScheduleDraft::size_of(body_->reduce_axes[a].extent);
    }
    if (plan_.piece) {
      const std::string loop = r.loops[r.reduce_loops[plan_.piece->axis]].name;
      schedule_.split(reduction_, loop, plan_.piece->length, loop + ".o", loop + ".i");
      reduce_loops_.insert(reduce_loops_.begin(), loop + ".o");
      reduce_loops_.push_back(loop + ".i");
      innermost_steps_ = plan_.piece->length;
    }
    if (reduce_loops_.size() > 1) schedule_.reorder(reduction_, reduce_loops_);
  }

  /// The reader: tiles of rows x (vectors * lanes), everything else outside.
  void cut_reader() {
    if (plan_.group_axis >= 0) {
      const StageState& s = draft_.stage(reader_);
      const std::string loop = s.loops[s.axis_loops[plan_.group_axis]].name;
      const int64_t groups = (draft_.extent_of(s, plan_.group_axis) + plan_.group_size - 1) / plan_.group_size;
      schedule_.split(reader_, loop, plan_.group_size, loop + ".g", loop + ".w");
      batch_.push_back(loop + ".g");
      batches_ *= static_cast<double>(groups);
      iterations_[batch_.back()] = groups;
    }
    for (int axis : draft_.storage_order(draft_.stage(reader_))) {
      if (axis == plan_.vector_axis || axis == plan_.row_axis || axis == plan_.outer_row_axis) continue;
      const bool batch = std::count(plan_.batch_axes.begin(), plan_.batch_axes.end(), axis) > 0;
      (batch ? batch_ : outer_).push_back(axis_name(reader_, axis));
      (batch ? batches_ : outer_tiles_) *= static_cast<double>(size_of_axis(axis));
      iterations_[axis_name(reader_, axis)] = size_of_axis(axis);
    }
    iterations_[vec_ + ".o"] = vector_tiles();
    schedule_.split(reader_, vec_, block_, vec_ + ".o", vec_ + ".i");
    if (plan_.row_axis >= 0) {
      const std::string row = axis_name(reader_, plan_.row_axis);
      if (plan_.outer_row_axis >= 0) {
        const std::string several = axis_name(reader_, plan_.outer_row_axis);
        row_outer_ = several + ".o";
        schedule_.split(reader_, several, plan_.outer_rows, row_outer_, several + ".i");
        rows_inner_ = {several + ".i", row};
      } else {
        row_outer_ = row + ".o";
        schedule_.split(reader_, row, plan_.tile.rows, row_outer_, row + ".i");
        rows_inner_ = {row + ".i"};
      }
      iterations_[row_outer_] = row_tiles();
    }
    schedule_.split(reader_, vec_ + ".i", lanes_, vec_ + ".v", vec_ + ".l");
  }

  void order_reader() {
    loops_ = batch_;
    decide_outermost(draft_, reduction_, reader_, outer_);
    if (!chunk_columns()) order_by_traffic();
    std::vector<std::string> all = loops_;
    all.insert(all.end(), rows_inner_.begin(), rows_inner_.end());
    all.push_back(vec_ + ".v");
    all.push_back(vec_ + ".l");
    schedule_.reorder(reader_, all);
    schedule_.vectorize(reader_, vec_ + ".l");
    schedule_.unroll(reader_, vec_ + ".v");
    for (const std::string& row : rows_inner_) schedule_.unroll(reader_, row);
  }

  /// An operand that rows and vectors both index (depthwise) is read again by the next rows: so many columns at a time
  /// that what a row of tiles reads stays in L1 until then.
  bool chunk_columns() {
    if (feeds_) return false;  // what is computed on the way has just been written
    const int64_t l1 = draft_.target().l1_bytes / 2;
    const int64_t column_bytes = plan_.window_elements * body_->outputs[0]->dtype.bytes();
    if (column_bytes == 0 || outer_.empty() || column_bytes * plan_.columns <= l1) return false;
    // From beyond L2 short pieces of adjacent columns come slower than whole rows three times (96 channels of 112x112
    // in stride 2, channels-last: 0.48 ms in pieces, 0.23 ms in rows).
    if (plan_.columns_adjacent && plan_.element_operand_bytes > draft_.target().l2_bytes / 2) return false;
    // Columns in blocks are whole planes apart, and one plane after the other is what the hardware prefetches best.
    const int64_t fitting = plan_.columns_adjacent ? choose_sweep_blocks(sweep_traffic(), draft_.target()) : 1;
    const int64_t tiles = decide_chunk(draft_, reduction_, fitting, vector_tiles());
    const int64_t chunks = (vector_tiles() + tiles - 1) / tiles, chunk = (vector_tiles() + chunks - 1) / chunks;
    if (chunk > 1) {
      schedule_.split(reader_, vec_ + ".o", chunk, vec_ + ".c", vec_ + ".o");
      iterations_[vec_ + ".c"] = chunks;
      loops_.push_back(vec_ + ".c");
    } else {
      loops_.push_back(vec_ + ".o");
    }
    loops_.insert(loops_.end(), outer_.begin(), outer_.end());
    if (!row_outer_.empty()) loops_.push_back(row_outer_);
    if (chunk > 1) loops_.push_back(vec_ + ".o");
    order_text_ = std::to_string(chunk * block_) + " columns at a time, so that rows stay in L1";
    return true;
  }

  SweepTraffic sweep_traffic() const {
    const auto element = static_cast<double>(body_->outputs[0]->dtype.bytes());
    const auto block = static_cast<double>(block_) * element;
    const int64_t lines = plan_.outer_row_axis < 0 ? 1 : size_of_axis(plan_.outer_row_axis);
    const double rows = outer_tiles_ * batches_ * static_cast<double>(lines);
    SweepTraffic traffic;
    traffic.window_bytes = static_cast<double>(plan_.window_elements) * block;
    traffic.row_bytes = static_cast<double>(plan_.rows) * block;
    traffic.element_bytes = static_cast<double>(plan_.element_operand_bytes);
    traffic.output_bytes = static_cast<double>(plan_.rows * plan_.columns) * rows * element;
    traffic.rows = static_cast<int64_t>(rows);
    traffic.blocks = vector_tiles();
    traffic.block_bytes = block;
    traffic.arithmetic_cycles = plan_.tile.cycles * outer_tiles_ * batches_ * static_cast<double>(plan_.steps);
    return traffic;
  }

  void order_by_traffic() {
    TileTraffic traffic;
    traffic.row_bytes = static_cast<double>(plan_.row_operand_bytes) / batches_;
    traffic.vector_bytes = static_cast<double>(plan_.vector_operand_bytes) / batches_;
    traffic.cold_bytes = static_cast<double>(plan_.constant_bytes) / batches_;
    traffic.asks_ahead = asks_ahead();
    traffic.output_bytes = static_cast<double>(body_->outputs[0]->dtype.bytes()) / batches_;
    for (size_t axis = 0; axis < draft_.stage(reader_).stage->axes.size(); ++axis)
      traffic.output_bytes *= static_cast<double>(size_of_axis(static_cast<int>(axis)));
    traffic.element_bytes = static_cast<double>(plan_.element_operand_bytes) / batches_;
    traffic.row_tiles = static_cast<int64_t>(outer_tiles_) * row_tiles();
    traffic.vector_tiles = vector_tiles();
    traffic.columns_adjacent = plan_.columns_adjacent;
    if (outer_.empty() && plan_.outer_row_axis < 0 && plan_.row_axis >= 0) traffic.max_row_blocks = row_tiles();
    // Whole rows of what feeds the tile are computed at a time; lines of pixels share no vectors.
    const bool rows_outside = feeds_ || plan_.problem.line_rows > 0;
    const TileOrder order = rows_outside ? TileOrder() : decide_tile_order(draft_, reduction_, traffic);
    order_text_ = order.vectors_outside ? "one block of vectors for all rows" : "vectors from L2";
    if (order.row_blocks > 1) {
      schedule_.split(reader_, row_outer_, (row_tiles() + order.row_blocks - 1) / order.row_blocks, row_outer_ + ".b",
                      row_outer_ + ".t");
      loops_.push_back(row_outer_ + ".b");
      iterations_[row_outer_ + ".b"] = order.row_blocks;
      row_outer_ += ".t";
      iterations_[row_outer_] = (row_tiles() + order.row_blocks - 1) / order.row_blocks;
      order_text_ = "one block of vectors for a " + std::to_string(order.row_blocks) + "th of the rows";
    }
    if (order.vectors_outside) loops_.push_back(vec_ + ".o");
    loops_.insert(loops_.end(), outer_.begin(), outer_.end());
    if (!row_outer_.empty()) loops_.push_back(row_outer_);
    if (!order.vectors_outside) loops_.push_back(vec_ + ".o");
  }

  /// Threads take the outer loops; enough pieces that they come out even.
  void share_out() {
    const double tiles = batches_ * outer_tiles_;
    const double cycles = plan_.tile.cycles * tiles * static_cast<double>(plan_.steps);
    if (feeds_ && share_rows(cycles)) return;
    if (!plan_.to_copy.empty()) return share_around_copies(cycles);
    std::vector<std::string> parallel = loops_;
    const double last = loops_.size() < 2              ? 1
                        : loops_.back() == vec_ + ".o" ? static_cast<double>(vector_tiles())
                                                       : static_cast<double>(row_tiles());
    const double pieces = tiles * static_cast<double>(row_tiles() * vector_tiles());
    if (parallel.size() > 1 && pieces / last >= 8 * draft_.request.threads) parallel.pop_back();
    const std::string shared = draft_.parallelize(reader_, parallel, cycles);
    at_ = parallel.size() == loops_.size() ? shared : loops_.back();
  }

  /// A copy of an operand serves all rows: it is made at a loop that no row stands around, if it stays near there and
  /// the loops so far have at least so many iterations (two, or it would be no piece); else before everything: "".
  std::string loop_for_copies(int64_t fewest) const {
    std::string last;
    int64_t pieces = 1;
    for (const std::string& loop : loops_) {
      if (loop == row_outer_ || std::count(outer_.begin(), outer_.end(), loop)) break;
      last = loop;
      pieces *= iterations_.at(loop);
    }
    const double bytes = static_cast<double>(plan_.vector_operand_bytes) / batches_ /
                         static_cast<double>(last == vec_ + ".o" ? vector_tiles() : 1);
    const bool is_near = bytes <= static_cast<double>(near_copy_bytes(draft_.target()));
    return pieces >= std::max<int64_t>(2, fewest) && is_near ? last : std::string();
  }

  /// Threads share the loops at which copies are made, or all of them.
  void share_around_copies(double cycles) {
    copies_at_ = loop_for_copies(draft_.threads);
    std::vector<std::string> around = loops_;
    if (!copies_at_.empty()) around.erase(std::find(around.begin(), around.end(), copies_at_) + 1, around.end());
    const std::string shared = draft_.parallelize(reader_, around, cycles);
    at_ = copies_at_.empty() ? shared : loops_.back();
    if (!copies_at_.empty()) copies_at_ = shared;
  }

  /// One share of the outermost loop for each thread, so that a thread walks its rows in order and can keep what the
  /// next ones need again.
  bool share_rows(double cycles) {
    if (draft_.threads <= 1) return false;
    for (size_t k = 0; k < loops_.size(); ++k) {
      const std::string loop = loops_[k];
      const int64_t iterations = iterations_.at(loop);
      if (iterations == 1) continue;
      if (iterations < draft_.threads) return false;
      schedule_.split(reader_, loop, (iterations + draft_.threads - 1) / draft_.threads, loop + ".p", loop + ".s",
                      Tail::kGuard);
      loops_[k] = loop + ".s";
      if (row_outer_ == loop) row_outer_ = loops_[k];
      iterations_[loops_[k]] = (iterations + draft_.threads - 1) / draft_.threads;
      draft_.parallelize(reader_, {loop + ".p"}, cycles);
      at_ = loops_.back();
      copies_at_ = loop_for_copies(1);
      return true;
    }
    return false;
  }

  /// The reduction into the tile; operands that lie across the vectors are turned once per piece.
  void attach() {
    std::vector<std::string> sources = plan_.to_copy, copies;
    std::sort(sources.begin(), sources.end());
    sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
    for (const std::string& source : sources) {
      copies.push_back(draft_.fresh(source + "_turned"));
      schedule_.cache_read(source, reduction_, copies.back());
    }
    schedule_.compute_at(reduction_, reader_, at_);
    for (const std::string& copy : copies) turn(copy);
    std::vector<std::string> rows;
    if (plan_.outer_row_dim >= 0) rows.push_back(axis_name(reduction_, plan_.outer_row_dim));
    if (plan_.row_dim >= 0) rows.push_back(axis_name(reduction_, plan_.row_dim));
    schedule_.tile(reduction_, rows, axis_name(reduction_, plan_.vector_dim), lanes_);
    for (const std::string& constant : plan_.constants) pack_constant(draft_, constant, reduction_, plan_, block_);
  }

  /// Copies of whole operands with the vector dimension innermost, made before: sites of their own.
  void turn_wholes() {
    std::vector<std::string> sources = plan_.to_turn;
    std::sort(sources.begin(), sources.end());
    sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
    for (const std::string& source : sources) {
      const std::string copy = draft_.fresh(source + "_turned");
      schedule_.cache_read(source, reduction_, copy);
      lay_out(copy);
    }
  }

  void turn(const std::string& copy) {
    lay_out(copy);
    // Inside another stage's loops they find their place when that is known; at root they are a site of their own.
    if (draft_.inside || copies_at_.empty()) return;
    const OneThread inside(draft_);
    schedule_elementwise(draft_, copy);
    schedule_.compute_at(copy, reader_, copies_at_);
  }

  /// The vector dimension of a copy goes innermost.
  void lay_out(const std::string& copy) {
    const Stage turned = draft_.effective(reduction_);
    for (const TensorAccess& access : accesses_of(schedule_.state(), *turned)) {
      if (schedule_.state().stages[access.producer].name != copy) continue;
      std::string layout;
      int last_dim = -1;
      for (size_t d = 0; d < access.indices.size(); ++d) {
        if (uses_var(access.indices[d], turned->axes[plan_.vector_dim].var)) last_dim = static_cast<int>(d);
        else layout += std::to_string(d) + ",";
      }
      if (last_dim < 0) continue;
      schedule_.transform_layout(copy, layout + std::to_string(last_dim));
      break;
    }
  }

  /// Short reductions are unrolled whole; of others the loops that conditions on rows depend on, where few steps lie
  /// inside, so that each copy decides them.
  void unroll_reduction() {
    const StageState r = draft_.stage(reduction_);  // a copy: steps follow
    constexpr int64_t kUnrollAll = 25, kUnrollConditioned = 11, kUnrollInner = 4;
    // Around so many steps a loop decides its conditions once and costs nothing: 3x3 convolutions in their taps along
    // x 0.95 to 1.0 of peak, written out 0.65 to 0.96.
    constexpr int64_t kManySteps = 16;
    // 1x1 convolution from 16 to 96 channels: 14x32 written out has 450 stack references, a loop of 9x48 takes half.
    const bool roomy = has_room_for_steps(plan_.problem, draft_.target(), plan_.tile.rows, plan_.tile.vectors);
    for (size_t a = 0; a < body_->reduce_axes.size(); ++a) {
      int64_t extent;
      if (!as_const_int(body_->reduce_axes[a].extent, &extent) || extent == 1) continue;
      bool conditioned = false;
      if (body_->where.get() && plan_.row_dim >= 0)
        visit(body_->where, [&](const Expr& e) {
          if (const auto* b = e.as<Binary>(); b && is_compare(b->op))
            conditioned |= uses_var(e, body_->reduce_axes[a].var) && uses_var(e, body_->axes[plan_.row_dim].var);
          return true;
        });
      if (plan_.piece && plan_.piece->axis == static_cast<int>(a)) continue;
      const std::string loop = r.loops[r.reduce_loops[a]].name;
      const bool innermost_loop = loop == reduce_loops_.back();
      const bool decided_in_copies =
          conditioned && extent <= kUnrollConditioned && (innermost_loop || innermost_steps_ < kManySteps);
      const bool unroll =
          decided_in_copies || (roomy && (plan_.steps <= kUnrollAll || (innermost_loop && extent <= kUnrollInner)));
      if (decide_unroll(draft_, reduction_, loop, extent, plan_.tile, unroll)) schedule_.unroll(reduction_, loop);
    }
  }

  /// Weights are used once a run and come from far: ask for them some steps ahead. The blocks lie in the order of their
  /// use, so that running past the end of one loop reaches what the next one wants.
  void prefetch_constants() {
    constexpr int64_t kPrefetchCycles = 400;
    const StageState r = draft_.stage(reduction_);  // a copy: steps follow
    const LoopVar& walked = r.loops[r.find_loop(reduce_loops_.back())];
    if (walked.kind != ForKind::kSerial || !walks_far()) return;
    // With pieces the same place of the next piece, all taps later: nearer ones would cost arithmetic in the loop.
    const auto preferred = plan_.piece
                               ? plan_.piece->length
                               : std::clamp<int64_t>(static_cast<int64_t>(kPrefetchCycles / step_cycles()), 16, 64);
    const int64_t distance = decide_prefetch(draft_, reduction_, preferred);
    if (distance == 0) return;
    const std::string sweep = asks_ahead() ? longest_sweep() : std::string();
    for (const std::string& constant : plan_.constants) {
      // Hints: what a place does not suit is left out.
      const auto hint = [&](const char* name, const char* key, const StepArg& value) {
        (void)schedule_.try_apply(
            Step{name, {{"stage", reduction_}, {"producer", constant}, {"loop", reduce_loops_.back()}, {key, value}}});
      };
      hint("prefetch", "distance", distance);
      if (!sweep.empty()) hint("prefetch_next", "spread", sweep);
    }
  }

  double step_cycles() const {
    return static_cast<double>(plan_.tile.rows * plan_.tile.vectors) / std::max(1, draft_.target().fma_ports);
  }
  bool walks_far() const {
    constexpr int64_t kPrefetchSteps = 16;
    return plan_.problem.row_loads > 0 && innermost_steps_ >= kPrefetchSteps;
  }
  /// What all rows share comes from far only once: each tile of rows asks for its share of the next block, where a step
  /// has cycles to spare for the four instructions (128x3072x768 with AVX-512: 0.83 of peak without, 0.92 with).
  bool asks_ahead() const {
    constexpr double kCyclesToSpare = 10;
    return walks_far() && !plan_.constants.empty() && step_cycles() >= kCyclesToSpare;
  }

  /// The loop of most iterations among those that meet one block of vectors with all rows; empty when there is none.
  std::string longest_sweep() const {
    const StageState& s = draft_.stage(reader_);
    std::string longest;
    int64_t most = 1;
    for (auto loop = loops_.rbegin(); loop != loops_.rend() && *loop != vec_ + ".o"; ++loop) {
      if (s.find_loop(*loop) < 0) break;  // fused with others
      if (iterations_.at(*loop) > most) {
        most = iterations_.at(*loop);
        longest = *loop;
      }
    }
    return longest;
  }

  void explain() {
    std::ostringstream text;
    text << "tile " << plan_.tile.rows << "x" << plan_.tile.vectors * lanes_ << " ("
         << plan_.tile.rows * plan_.tile.vectors << " accumulators), " << plan_.rows << "x" << plan_.columns << " over "
         << plan_.steps << " steps, predicted " << static_cast<int>(plan_.tile.efficiency * 100) << " % of peak, "
         << order_text_;
    if (plan_.narrow.bits > 0) text << ", weights in " << to_string(plan_.narrow) << " widened for each tile of rows";
    draft_.explain(reduction_, text.str());
  }

  ScheduleDraft& draft_;
  Schedule& schedule_;
  const std::string reader_, reduction_;
  const TilePlan& plan_;
  const int lanes_;
  const Stage body_;
  const bool feeds_;  ///< another product feeds the reduction: it may be computed in the loops around the tile
  const std::string vec_;
  const int64_t block_;  ///< columns of a tile
  std::vector<std::string> reduce_loops_;
  int64_t innermost_steps_ = 1;                                  ///< iterations of the innermost reduction loop
  std::vector<std::string> batch_, outer_, rows_inner_, loops_;  ///< of the reader; loops_: all outside the tile
  std::map<std::string, int64_t> iterations_;                    ///< of the loops outside the tile
  double batches_ = 1, outer_tiles_ = 1;
  std::string row_outer_, at_, order_text_;
  std::string copies_at_;  ///< the loop at which copies of operands are made; empty: at root
};

}  // namespace

bool schedule_tile(ScheduleDraft& draft, const std::string& reader, const std::string& reduction) {
  std::optional<TilePlan> plan = plan_tile(draft, reader, reduction);
  if (!plan) return false;
  decide_tile(draft, reduction, *plan);
  Tiler(draft, reader, reduction, *plan).run();
  return true;
}

}  // namespace tensmith
