/// What the steps of a schedule have made of a workload so far: for each stage its loops, where it is computed, how it
/// is stored.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "tensor/layout.h"
#include "tensor/workload.h"

namespace tensmith {

/// What happens where the factor of a split does not divide the extent.
enum class Tail : uint8_t {
  kGuard,         ///< the inner body runs under a condition
  kPeel,          ///< the last, shorter piece gets a body of its own
  kShiftInwards,  ///< the last piece starts earlier and computes some elements twice (not for reduction loops)
  kPad,  ///< the tail computes elements that nobody reads; storage is rounded up (only stages that are not outputs)
};
const char* to_string(Tail tail);
Result<Tail> parse_tail(std::string_view text);

/// What a loop asks the processor for before it is needed (prefetch, prefetch_next).
struct Prefetch {
  std::string producer;           ///< the stage or input that is read
  int64_t distance = 0;           ///< prefetch: iterations ahead; 0: the block behind the one at hand (prefetch_next)
  std::string spread_stage = {};  ///< prefetch_next: the stage that this one is computed at
  int spread = -1;                ///< prefetch_next: a loop of that stage, perhaps split or fused since
};

/// A loop of a stage, made from an axis or by split and fuse.
struct LoopVar {
  std::string name;
  bool is_reduce = false;
  ForKind kind = ForKind::kSerial;
  Attrs attrs = {};
  std::vector<int64_t> cuts = {};  ///< loop_partition: iterations before which the loop is cut, negative from its end
  std::vector<Prefetch> prefetches = {};
  bool is_unit = false;  ///< unit_loop: of one iteration, it comes from no axis and no other loop
};

/// How a loop came from others. Indices into StageState::loops.
struct LoopRelation {
  enum class Kind : uint8_t { kSplit, kFuse } kind;
  int whole;         ///< kSplit: the loop that was split; kFuse: the result
  int outer, inner;  ///< kSplit: the results; kFuse: the two that were fused
  int64_t factor = 0;
  Tail tail = Tail::kGuard;
};

enum class AttachKind : uint8_t { kRoot, kInlined, kAt };

/// How the storage of a stage that is computed at a loop lives on from one iteration to the next.
enum class Window : uint8_t {
  kNone,
  kRolling,    ///< rolling_buffer: what iterations share is computed once
  kPipelined,  ///< double_buffer, pipeline: computed ahead, into slots that take turns
};

struct StageState {
  std::string name;
  Stage stage;
  std::vector<LoopVar> loops;
  std::vector<int> axis_loops, reduce_loops;  ///< the loops of the stage's own axes, before any split
  std::vector<LoopRelation> relations;        ///< oldest first
  std::vector<int> order;                     ///< the loops that exist now, outermost first
  AttachKind attach = AttachKind::kRoot;
  std::string attach_stage, attach_loop;  ///< kAt
  std::optional<Scope> scope;             ///< unset: chosen by lowering from the size
  std::vector<Layout> layouts;            ///< one per output; rank 0 Layout (default) stands for row-major
  int64_t align_elements = 0;  ///< storage_align: physical row length is this far from a multiple of 4 KiB; 0 off
  std::vector<int64_t> separators = {};  ///< set_axis_separator: physical dims from which on rows begin at cache lines
  int init_loop = -1;  ///< decompose_reduction: loop at which the start value is stored; -1: outermost reduce loop
  Window window = Window::kNone;
  int64_t slots = 0;        ///< kPipelined: how many; the stage runs so many iterations, less one, ahead
  int intrinsic_loop = -1;  ///< tensorize: it and the loops inside it are the intrinsic
  std::string intrinsic;    ///< tensorize: name in schedule/intrinsics.h
  int cache_loop = -1;      ///< cache_inplace: results rest in a cache of their own during one of its iterations
  Scope cache_scope = Scope::kStack;
  Attrs notes;                                     ///< annotate, of the stage as a whole
  std::map<std::string, Attrs> access_notes = {};  ///< annotate, of what it reads: by name of the stage or input read

  /// Index into `loops` of a current loop with that name, or -1.
  int find_loop(const std::string& loop_name) const;
  /// Position in `order`, or -1.
  int order_position(int loop) const;
  /// Position in `order` before which a reduction stores its start values; behind all loops when there is none.
  int init_position() const;
  /// The relation that made `loop` disappear (it was split or fused), or null.
  const LoopRelation* consumer_of(int loop) const;
  /// The relation that made `loop`, or null for an axis.
  const LoopRelation* maker_of(int loop) const;
  /// Whether `loop` is `ancestor` or was made from it through any number of splits and fuses.
  bool comes_from(int loop, int ancestor) const;
  /// The layout of an output, row-major made explicit.
  Layout layout_of(int output) const;
};

/// The whole state. Copies share stages.
struct ScheduleState {
  std::string name;
  std::vector<StageState> stages;  ///< producers first, placeholders included
  std::vector<Buffer> inputs, outputs;
  std::vector<Var> dims;

  StageState* find(const std::string& stage_name);
  const StageState* find(const std::string& stage_name) const;
  /// The stage that owns a logical buffer, or -1.
  int producer_of(const BufferNode* buffer) const;
  /// Stages that read the outputs of stage `index`.
  std::vector<int> consumers_of(int index) const;
  bool is_output(int index) const;
  /// A stage name that is not taken: `base`, `base_1`, ...
  std::string unique_name(const std::string& base) const;
};

/// Fresh state: all stages computed at root with serial loops in axis order, reduce loops innermost.
ScheduleState initial_state(const Workload& workload);
/// The state of one stage with its axes as loops.
StageState fresh_stage(const Stage& stage, const std::string& name);

/// Copies of a stage with changes, for steps that rewrite the workload. `edit` may change everything but identity.
Stage rebuild_stage(const Stage& stage, const std::function<void(StageNode&)>& edit);

/// The loop nests with their stages as text, `marked` with an arrow (for error messages): `stage.loop`.
std::string loop_nest_text(const ScheduleState& state, const std::string& marked = {});

}  // namespace tensmith
