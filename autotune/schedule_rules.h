/// What the rules behind every schedule are made of: the draft that they work on, one function per kind of loop nest.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "autotune/access.h"
#include "autotune/default_schedule.h"
#include "autotune/space/chooser.h"

namespace tensmith {

/// A schedule in the making with what the rules need to know, and who decides for them.
class ScheduleDraft {
 public:
  /// `chooser` may be null: then the rules decide by themselves. It and the request must live as long as the draft.
  ScheduleDraft(const Workload& workload, const ScheduleRequest& request, Chooser* chooser = nullptr);

  Schedule schedule;
  const ScheduleRequest& request;
  int threads;          ///< that the rules may use: those of the request, 1 for what runs inside a parallel loop
  bool inside = false;  ///< what is scheduled will be computed at a loop of another stage
  std::map<std::string, std::vector<int64_t>> pieces;  ///< of such a stage: how far a piece extends along each axis
  std::string explanation;
  std::vector<ChosenPoint> points;  ///< what was decided so far
  std::vector<std::string> rules;   ///< which rule served which root: `R: tile-epilogue`

  /// Asks the chooser. What has but one answer is no decision and is not recorded.
  ChoiceValue decide(Question&& question);
  int64_t decide_number(Question&& question) { return std::get<int64_t>(decide(std::move(question))); }
  std::string decide_word(Question&& question) { return std::get<std::string>(decide(std::move(question))); }
  /// A question with the answers 0 and 1; what the rule would not do is expected to cost `other` times as much.
  bool decide_yes(const std::string& stage, const std::string& what, bool preferred, double other);

  const Target& target() const { return request.target; }
  const StageState& stage(const std::string& name) const { return *schedule.state().find(name); }
  int index_of(const std::string& name) const {
    return static_cast<int>(&stage(name) - schedule.state().stages.data());
  }
  /// The stage as it will be lowered, with inlined producers in its bodies.
  Stage effective(const std::string& name) const;
  /// A constant extent, or a guess for symbolic ones.
  static int64_t size_of(const Expr& extent);
  /// How far an axis of a stage extends, in the pieces in which the stage is computed.
  int64_t extent_of(const StageState& stage, int axis) const;
  int lanes_for(DType type) const;
  /// A stage name that is free.
  std::string fresh(const std::string& base) const { return schedule.state().unique_name(base); }
  void explain(const std::string& stage, const std::string& text) { explanation += stage + ": " + text + "\n"; }
  /// Axis numbers of a stage in the order of its storage, outermost first; axes of extent 1 first.
  std::vector<int> storage_order(const StageState& stage) const;
  /// Runs a loop in vectors, by itself four of them a turn where the extent gives as many; short tails get vectors of
  /// their own. Decides `vectors`: how many a turn, 0: none.
  void vectorize_loop(const std::string& stage, const std::string& loop, const Expr& extent, int lanes);
  /// Runs the loops on the threads when the work is worth it: fuses them (adjacent, outermost) into one parallel loop.
  /// Decides `parallel`: how many of them, 0: none.
  /// Returns the name of the innermost of them as it is called afterwards.
  std::string parallelize(const std::string& stage, const std::vector<std::string>& loops, double cycles);

 private:
  Chooser* chooser_;
};

/// As long as it lives the rules have one thread: what they schedule runs inside a loop that threads share.
class OneThread {
 public:
  explicit OneThread(ScheduleDraft& draft) : draft_(draft), threads_(std::exchange(draft.threads, 1)) {}
  ~OneThread() { draft_.threads = threads_; }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  ScheduleDraft& draft_;
  const int threads_;
};

/// Puts cheap elementwise and injective stages into their readers.
void inline_cheap_stages(ScheduleDraft& draft);

/// The stages that read `name` where they are computed: not the inlined ones, but what these went into.
std::vector<std::string> readers_of(const ScheduleDraft& draft, const std::string& name);

/// Stages that are computed on the way to `root` and by nobody else: not inlined, not inputs, not themselves roots.
std::vector<std::string> cone_of(const ScheduleDraft& draft, const std::string& root,
                                 const std::vector<std::string>& roots);

/// A stage without reduction: vectorised along its storage, in parallel over the rest. Decides `piece` (of a long
/// vector alone) and `block` (of the two loops that a transposition walks crosswise).
void schedule_elementwise(ScheduleDraft& draft, const std::string& stage);

/// `stage` reads reduction `reduction` at its own indices (or is it, by a cache stage made before): a register tile
/// over the two innermost axes of its storage. Returns false, changing nothing, when the accesses do not suit.
bool schedule_tile(ScheduleDraft& draft, const std::string& stage, const std::string& reduction);

/// `root` and its cone hold one reduction, a product that a register tile suits, between stages that select expressions
/// by the remainder of an index (transformed tiles): pieces of the tiles through all of them, so that what lies between
/// stays in L2. Returns false, changing nothing, when there is no such remainder.
bool schedule_tile_chain(ScheduleDraft& draft, const std::string& root, const std::vector<std::string>& cone,
                         const std::string& reduction);
/// Whether it would.
bool tile_chain_suits(const ScheduleDraft& draft, const std::string& root, const std::vector<std::string>& cone,
                      const std::string& reduction);

/// `stage` reads reductions that do not depend on its innermost axes: row by row, each reduction in vector lanes.
/// Returns false, changing nothing, when the accesses do not suit.
bool schedule_rows(ScheduleDraft& draft, const std::string& stage, const std::vector<std::string>& cone);
/// Whether it would.
bool rows_suit(const ScheduleDraft& draft, const std::string& stage, const std::vector<std::string>& cone);

}  // namespace tensmith
