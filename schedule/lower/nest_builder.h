/// The builder behind build_loop_nests: emits each stage's loops recursively, so that every piece of a peeled loop gets
/// bounds of its own. Internal to schedule/lower/.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>

#include "schedule/state.h"
#include "tensor/simplify.h"
#include "tensor/walk.h"

namespace tensmith {

/// A box of logical indices: [min, min + extent) per dimension.
struct Region {
  std::vector<Expr> min, extent;
  /// The same before it was cut at the edges of tensors: a box around it whose extents mostly are constants, which
  /// storage is sized by. Empty: the same.
  std::vector<Expr> wide_min, wide_extent;

  Interval wide(size_t dim) const {
    const Expr& lo = wide_min.empty() ? min[dim] : wide_min[dim];
    return {lo, lo + (wide_extent.empty() ? extent[dim] : wide_extent[dim]) - 1};
  }
};

/// Where the elements of a logical buffer are, at the place that is being emitted.
struct Storage {
  Buffer buffer;             ///< physical
  std::vector<Expr> origin;  ///< logical index of its first element
  Layout layout;
  std::vector<Expr> fold = {};  ///< per dim: indices count modulo this instead of from the origin; null or empty: not
  Expr slot = {};               ///< the first physical index, where slots take turns; null: there are none
};

/// Results that go from one storage to another one, by output.
struct ResultMove {
  std::vector<Storage> from, to;
};

/// A stage whose loops are being emitted: which loops are open, and what has been decided on the way.
struct NestInstance {
  int stage = -1;
  Region domain;                          ///< of the stage's axes
  std::vector<Expr> value;                ///< by loop: the variable (or constant) of an opened loop; null while closed
  std::map<int, Expr> inner_extent;       ///< by loop: extent that a peel decision fixed
  std::set<const LoopRelation*> decided;  ///< peels decided
  std::set<const LoopRelation*>
      guarded;  ///< peels whose inner loop was opened before its extent was known: under a condition instead
  std::set<int> conditions_done;  ///< conditions already emitted, by number
  std::map<int, Var> free_vars;   ///< stand-ins of closed loops in bounds inference
  int pending_attach = -1;        ///< loop just opened, whose attached stages are still to be emitted
  bool init_done = false;
  bool cached = false;               ///< the results are in their cache (cache_inplace)
  const ResultMove* move = nullptr;  ///< the loops only move results, in place of start values
};

/// A loop that is being emitted and inside which stages live on from one iteration to the next (see Window): their
/// storage lies outside the loop.
struct WindowFrame {
  int stage = -1, loop = -1;
  std::map<const BufferNode*, Storage> storage;
  std::map<int, size_t> moving;  ///< by stage: the dim along which a rolling window moves
  std::vector<Buffer> buffers;
};

class NestBuilder {
 public:
  NestBuilder(const ScheduleState& state, int64_t line_bytes);
  LoopFunction build();

 private:
  /// A condition under which a point of the stage is computed, and the loops that it depends on.
  struct Condition {
    std::vector<int> loops;
    bool main_only;  ///< does not concern the start value of a reduction
    const LoopRelation* guard = nullptr;
    Expr where = {};
  };

  const StageState& stage(int index) const { return state_.stages[index]; }

  // Loops (nest_loops.cpp).
  Stmt emit_stage(int index, const Region& domain);
  Stmt rest(NestInstance in, size_t k, bool init);
  Stmt open_loop(NestInstance in, size_t k, bool init);
  Stmt decide_peel(NestInstance in, const LoopRelation& r, size_t k, bool init);
  Stmt leaf(const NestInstance& in, bool init);
  /// The rest of the loops with results in a cache (nest_cache.cpp).
  Stmt emit_cached(NestInstance in, size_t k);
  Stmt move_leaf(const NestInstance& in);
  /// The elements that the loops still closed compute.
  Region region_of_results(NestInstance& in);
  Stmt emit_attached(NestInstance in, int loop, size_t k);
  std::vector<int> attached_at(int index, int loop) const;
  std::vector<Condition> conditions_of(int index) const;
  Expr condition_expr(NestInstance& in, const Condition& c);
  bool can_peel(const NestInstance& in, const LoopRelation& r) const;
  bool needs_constant_extent(const StageState& s, int loop, int64_t factor) const;

  // Prefetching (nest_prefetch.cpp).
  /// What is to be asked for at the start of an iteration of the loop.
  std::vector<Stmt> prefetches(const NestInstance& in, int loop);
  std::vector<Stmt> prefetches_ahead(const NestInstance& in, int loop, int producer, int64_t distance);
  std::vector<Stmt> prefetches_of_next(const NestInstance& in, int loop, int producer, const Prefetch& prefetch);
  [[noreturn]] void refuse_prefetch(int index, int loop, const std::string& why) const;
  /// The first place of the producer that the bodies read, physical; null when they read none.
  Expr first_read(const NestInstance& at, int producer);

  // Bounds (nest_bounds.cpp).
  Expr extent_of(const NestInstance& in, int loop);
  Expr value_of(NestInstance& in, int loop, RangeMap* free);
  bool determined(const NestInstance& in, int loop) const;
  /// Whether no part of the loop has a value yet.
  bool is_open(const NestInstance& in, int loop) const;
  /// Whether the extent is known to be at least 1.
  bool is_positive(const Expr& extent) const;
  VarMap axis_values(NestInstance& in, bool with_reduce);
  Region region_of(int producer, NestInstance& in, std::map<int, Region>& known);
  bool is_inside(int index, const NestInstance& in) const;
  /// Whether the loop's value stays below its extent by the way it was split (no tail reaches beyond it).
  bool stays_inside(const NestInstance& in, int loop);
  /// The interval without bounds that are read from what stages compute: those need not be there yet where bounds are
  /// wanted.
  Interval without_stages(Interval range) const;
  /// Cuts the region to the shape, except where it is known to lie inside.
  Region clamp(const Region& region, const std::vector<Expr>& shape, const std::vector<bool>& inside);

  // Windows (nest_windows.cpp).
  /// The frame of a loop that is open, or null when nothing lives on in it.
  WindowFrame* frame_of(int index, int loop);
  /// Emits a loop inside which windows live, with their storage around it.
  Stmt with_frame(const NestInstance& in, int loop, const std::function<Stmt()>& emit);
  /// Storage of what is computed at the loop, local buffers into `buffers`.
  void allocate_attached(const NestInstance& in, int loop, const std::map<int, Region>& regions,
                         std::vector<Buffer>* buffers);
  void allocate_rolling(const NestInstance& in, WindowFrame& frame, int index);
  /// What is needed of the stage in an iteration, whichever it is, and in the one before.
  std::pair<Region, Region> regions_of_any_turn(const NestInstance& in, int loop, int index);
  void allocate_slots(const NestInstance& in, WindowFrame& frame, int index);
  /// The stages computed at the loop, where some have windows.
  Stmt emit_windows(const NestInstance& in, int loop, const std::map<int, Region>& regions);
  Stmt emit_ahead(const NestInstance& in, int loop, int index, const Expr& turn);
  /// What the iteration does not share with the one before.
  Region fresh_part(const NestInstance& in, const WindowFrame& frame, int index, const Region& region);
  /// The instance at another iteration, in a form that is the same for the last, shorter piece.
  NestInstance at_turn(const NestInstance& in, int loop, const Expr& turn) const;
  [[noreturn]] void refuse_window(int index, const std::string& why) const;

  // Intrinsics (nest_intrinsics.cpp).
  /// The loops from `order[k]` inwards as one intrinsic; null where the piece has other extents than it.
  Stmt emit_intrinsic(NestInstance in, size_t k);

  // Storage (nest_storage.cpp).
  Storage allocate_for(int index, int output, const Region& region, bool at_root, int fold_dim = -1, int64_t slots = 0,
                       std::optional<Scope> wanted = {});
  Expr remap(const Expr& e) const;
  Stmt remap(const Stmt& s) const;
  std::vector<Expr> physical(const Storage& storage, const std::vector<Expr>& index) const;
  /// Elements of a cache line.
  int64_t line_elements(DType dtype) const {
    return std::max<int64_t>(line_bytes_ / std::max<int64_t>(dtype.bytes(), 1), 1);
  }
  Expr short_form(const Expr& e) const { return simplify(e, facts_); }

  const int64_t line_bytes_;  // of a cache line
  ScheduleState state_;
  Facts facts_;
  std::map<const BufferNode*, Storage> storage_;
  std::set<const BufferNode*> output_buffers_;
  std::vector<const NestInstance*> around_;  ///< the stages at whose loops the one being emitted is computed
  std::deque<WindowFrame> frames_;           // references stay valid while inner loops push theirs
};

}  // namespace tensmith
