/// A schedule: a workload plus a list of steps. It never changes what is computed, only when, where and in what order.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/rng.h"
#include "schedule/state.h"
#include "schedule/step.h"

namespace tensmith {

/// Builds up a list of legal steps. Each method appends one step (see schedule/primitives/ for what each does) and
/// throws ScheduleError with the loop nest when it is illegal; `try_apply` returns the reason instead. Loops are named;
/// split and fuse name their results.
class Schedule {
 public:
  /// `seed` is of the decisions that steps draw (sample_tile and its like); they are recorded with the steps.
  explicit Schedule(Workload workload, uint64_t seed = 0);

  const Workload& workload() const { return workload_; }
  const std::vector<Step>& steps() const { return steps_; }
  const ScheduleState& state() const { return state_; }

  Result<void> try_apply(const Step& step);
  void apply(const Step& step);

  void split(const std::string& stage, const std::string& loop, int64_t factor, const std::string& outer,
             const std::string& inner, Tail tail = Tail::kPeel);
  void fuse(const std::string& stage, const std::vector<std::string>& loops, const std::string& fused);
  void reorder(const std::string& stage, const std::vector<std::string>& loops);
  void vectorize(const std::string& stage, const std::string& loop);
  void unroll(const std::string& stage, const std::string& loop);
  void parallel(const std::string& stage, const std::string& loop);
  void tile(const std::string& stage, const std::vector<std::string>& rows, const std::string& columns, int64_t lanes);
  void compute_at(const std::string& stage, const std::string& consumer, const std::string& loop);
  void compute_inline(const std::string& stage);
  void compute_root(const std::string& stage);
  void cache_read(const std::string& stage, const std::string& consumer, const std::string& name);
  void cache_write(const std::string& stage, const std::string& name);
  void rfactor(const std::string& stage, const std::string& loop, const std::string& name);
  void decompose_reduction(const std::string& stage, const std::string& loop);
  void transform_layout(const std::string& stage, const std::string& layout, int64_t output = 0);
  void set_scope(const std::string& stage, const std::string& scope);
  void storage_align(const std::string& stage, int64_t elements);
  void prefetch(const std::string& stage, const std::string& producer, const std::string& loop, int64_t distance);
  void prefetch_next(const std::string& stage, const std::string& producer, const std::string& loop,
                     const std::string& spread);
  void pragma(const std::string& stage, const std::string& loop, const std::string& key, int64_t value);
  void reverse_compute_at(const std::string& stage, const std::string& producer, const std::string& loop);
  void reverse_compute_inline(const std::string& stage);
  void rolling_buffer(const std::string& stage);
  void double_buffer(const std::string& stage);
  void pipeline(const std::string& stage, int64_t slots);
  void tensorize(const std::string& stage, const std::string& loop, const std::string& intrinsic);
  void loop_partition(const std::string& stage, const std::string& loop, const std::vector<int64_t>& points);
  /// An empty loop means the stage as a whole.
  void annotate(const std::string& stage, const std::string& loop, const std::string& key, int64_t value,
                const std::string& access = {});
  void blockize(const std::string& stage, const std::string& with, const std::string& name);
  void cache_index(const std::string& stage, const std::string& producer, int64_t dim, const std::string& name,
                   int64_t read = 0);
  void cache_inplace(const std::string& stage, const std::string& loop, const std::string& scope = "stack");
  void decompose_padding(const std::string& stage, const std::string& loop);
  void pad_einsum(const std::string& stage, const std::vector<int64_t>& multiples, const std::string& name);
  void read_at(const std::string& stage, const std::string& loop, const std::string& producer, const std::string& name,
               const std::string& scope = "auto", int64_t lanes = 1);
  void reindex(const std::string& stage, const std::string& producer, const std::string& name, int64_t read = 0);
  void set_axis_separator(const std::string& stage, const std::vector<int64_t>& separators);
  void write_at(const std::string& stage, const std::string& loop, const std::string& name,
                const std::string& scope = "auto", int64_t lanes = 1);
  void unannotate(const std::string& stage, const std::string& loop, const std::string& key,
                  const std::string& access = {});
  void fuse_reduction_epilogue(const std::string& stage, const std::string& producer);
  void group(const std::string& stage, const std::string& from, const std::string& consumer, const std::string& loop);
  /// Decisions that are not given are drawn.
  void sample_categorical(const std::string& stage, const std::string& loop, const std::string& key,
                          const std::vector<int64_t>& values, const std::vector<int64_t>& weights = {},
                          const std::vector<int64_t>& decision = {});
  void sample_location(const std::string& stage, const std::string& consumer,
                       const std::vector<int64_t>& decision = {});
  void sample_tile(const std::string& stage, const std::string& loop, const std::vector<std::string>& names,
                   int64_t max_inner = 16, const std::vector<int64_t>& decision = {});
  void unit_loop(const std::string& stage, const std::string& name, const std::string& loop = {});
  void unsafe_set_dtype(const std::string& stage, const std::string& dtype);

  /// The steps, one a line.
  std::string to_string() const;

 private:
  Workload workload_;
  std::vector<Step> steps_;
  ScheduleState state_;
  Rng rng_;
};

}  // namespace tensmith
