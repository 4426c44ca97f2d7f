#include "schedule/schedule.h"

#include "schedule/primitive_def.h"

namespace tensmith {

Schedule::Schedule(Workload workload, uint64_t seed)
    : workload_(std::move(workload)), state_(initial_state(workload_)), rng_(seed, "schedule") {}

Result<void> Schedule::try_apply(const Step& step) {
  Result<Step> checked = check_schema(state_, step);
  if (!checked) return checked.failure();
  Step full = std::move(checked).value();
  Rng rng = rng_;
  if (Result<void> drawn = draw_decision(state_, full, rng); !drawn) return drawn;
  if (Result<void> done = apply_step(state_, full); !done) return done;
  rng_ = rng;
  steps_.push_back(std::move(full));
  return {};
}

void Schedule::apply(const Step& step) {
  const Result<void> done = try_apply(step);
  if (done) return;
  std::string marked;
  if (const StepArg* stage = step.find("stage"); stage && std::holds_alternative<std::string>(*stage))
    if (const StepArg* loop = step.find("loop"); loop && std::holds_alternative<std::string>(*loop))
      marked = std::get<std::string>(*stage) + "." + std::get<std::string>(*loop);
  throw ScheduleError(done.failure().id, "schedule " + workload_.name + ": " + tensmith::to_string(step) + ": " +
                                             done.failure().message + "\n" + loop_nest_text(state_, marked));
}

void Schedule::split(const std::string& stage, const std::string& loop, int64_t factor, const std::string& outer,
                     const std::string& inner, Tail tail) {
  apply({"split",
         {{"stage", stage},
          {"loop", loop},
          {"factor", factor},
          {"outer", outer},
          {"inner", inner},
          {"tail", std::string(tensmith::to_string(tail))}}});
}
void Schedule::fuse(const std::string& stage, const std::vector<std::string>& loops, const std::string& fused) {
  apply({"fuse", {{"stage", stage}, {"loops", loops}, {"fused", fused}}});
}
void Schedule::reorder(const std::string& stage, const std::vector<std::string>& loops) {
  apply({"reorder", {{"stage", stage}, {"loops", loops}}});
}
void Schedule::vectorize(const std::string& stage, const std::string& loop) {
  apply({"vectorize", {{"stage", stage}, {"loop", loop}}});
}
void Schedule::unroll(const std::string& stage, const std::string& loop) {
  apply({"unroll", {{"stage", stage}, {"loop", loop}}});
}
void Schedule::parallel(const std::string& stage, const std::string& loop) {
  apply({"parallel", {{"stage", stage}, {"loop", loop}}});
}
void Schedule::tile(const std::string& stage, const std::vector<std::string>& rows, const std::string& columns,
                    int64_t lanes) {
  apply({"tile", {{"stage", stage}, {"rows", rows}, {"columns", columns}, {"lanes", lanes}}});
}
void Schedule::compute_at(const std::string& stage, const std::string& consumer, const std::string& loop) {
  apply({"compute_at", {{"stage", stage}, {"consumer", consumer}, {"at", loop}}});
}
void Schedule::compute_inline(const std::string& stage) { apply({"compute_inline", {{"stage", stage}}}); }
void Schedule::compute_root(const std::string& stage) { apply({"compute_root", {{"stage", stage}}}); }
void Schedule::cache_read(const std::string& stage, const std::string& consumer, const std::string& name) {
  apply({"cache_read", {{"stage", stage}, {"consumer", consumer}, {"name", name}}});
}
void Schedule::cache_write(const std::string& stage, const std::string& name) {
  apply({"cache_write", {{"stage", stage}, {"name", name}}});
}
void Schedule::rfactor(const std::string& stage, const std::string& loop, const std::string& name) {
  apply({"rfactor", {{"stage", stage}, {"loop", loop}, {"name", name}}});
}
void Schedule::decompose_reduction(const std::string& stage, const std::string& loop) {
  apply({"decompose_reduction", {{"stage", stage}, {"loop", loop}}});
}
void Schedule::transform_layout(const std::string& stage, const std::string& layout, int64_t output) {
  apply({"transform_layout", {{"stage", stage}, {"layout", layout}, {"output", output}}});
}
void Schedule::set_scope(const std::string& stage, const std::string& scope) {
  apply({"set_scope", {{"stage", stage}, {"scope", scope}}});
}
void Schedule::storage_align(const std::string& stage, int64_t elements) {
  apply({"storage_align", {{"stage", stage}, {"elements", elements}}});
}
void Schedule::prefetch(const std::string& stage, const std::string& producer, const std::string& loop,
                        int64_t distance) {
  apply({"prefetch", {{"stage", stage}, {"producer", producer}, {"loop", loop}, {"distance", distance}}});
}
void Schedule::prefetch_next(const std::string& stage, const std::string& producer, const std::string& loop,
                             const std::string& spread) {
  apply({"prefetch_next", {{"stage", stage}, {"producer", producer}, {"loop", loop}, {"spread", spread}}});
}
void Schedule::pragma(const std::string& stage, const std::string& loop, const std::string& key, int64_t value) {
  apply({"pragma", {{"stage", stage}, {"loop", loop}, {"key", key}, {"value", value}}});
}
void Schedule::reverse_compute_at(const std::string& stage, const std::string& producer, const std::string& loop) {
  apply({"reverse_compute_at", {{"stage", stage}, {"producer", producer}, {"at", loop}}});
}
void Schedule::reverse_compute_inline(const std::string& stage) {
  apply({"reverse_compute_inline", {{"stage", stage}}});
}
void Schedule::rolling_buffer(const std::string& stage) { apply({"rolling_buffer", {{"stage", stage}}}); }
void Schedule::double_buffer(const std::string& stage) { apply({"double_buffer", {{"stage", stage}}}); }
void Schedule::pipeline(const std::string& stage, int64_t slots) {
  apply({"pipeline", {{"stage", stage}, {"slots", slots}}});
}
void Schedule::tensorize(const std::string& stage, const std::string& loop, const std::string& intrinsic) {
  apply({"tensorize", {{"stage", stage}, {"loop", loop}, {"intrinsic", intrinsic}}});
}
void Schedule::loop_partition(const std::string& stage, const std::string& loop, const std::vector<int64_t>& points) {
  apply({"loop_partition", {{"stage", stage}, {"loop", loop}, {"points", points}}});
}
void Schedule::annotate(const std::string& stage, const std::string& loop, const std::string& key, int64_t value,
                        const std::string& access) {
  apply({"annotate", {{"stage", stage}, {"loop", loop}, {"key", key}, {"value", value}, {"access", access}}});
}
void Schedule::blockize(const std::string& stage, const std::string& with, const std::string& name) {
  apply({"blockize", {{"stage", stage}, {"with", with}, {"name", name}}});
}
void Schedule::cache_index(const std::string& stage, const std::string& producer, int64_t dim, const std::string& name,
                           int64_t read) {
  apply({"cache_index", {{"stage", stage}, {"producer", producer}, {"dim", dim}, {"name", name}, {"read", read}}});
}
void Schedule::cache_inplace(const std::string& stage, const std::string& loop, const std::string& scope) {
  apply({"cache_inplace", {{"stage", stage}, {"loop", loop}, {"scope", scope}}});
}
void Schedule::decompose_padding(const std::string& stage, const std::string& loop) {
  apply({"decompose_padding", {{"stage", stage}, {"loop", loop}}});
}
void Schedule::pad_einsum(const std::string& stage, const std::vector<int64_t>& multiples, const std::string& name) {
  apply({"pad_einsum", {{"stage", stage}, {"multiples", multiples}, {"name", name}}});
}
void Schedule::read_at(const std::string& stage, const std::string& loop, const std::string& producer,
                       const std::string& name, const std::string& scope, int64_t lanes) {
  apply(
      {"read_at",
       {{"stage", stage}, {"loop", loop}, {"producer", producer}, {"name", name}, {"scope", scope}, {"lanes", lanes}}});
}
void Schedule::reindex(const std::string& stage, const std::string& producer, const std::string& name, int64_t read) {
  apply({"reindex", {{"stage", stage}, {"producer", producer}, {"name", name}, {"read", read}}});
}
void Schedule::set_axis_separator(const std::string& stage, const std::vector<int64_t>& separators) {
  apply({"set_axis_separator", {{"stage", stage}, {"separators", separators}}});
}
void Schedule::write_at(const std::string& stage, const std::string& loop, const std::string& name,
                        const std::string& scope, int64_t lanes) {
  apply({"write_at", {{"stage", stage}, {"loop", loop}, {"name", name}, {"scope", scope}, {"lanes", lanes}}});
}
void Schedule::unannotate(const std::string& stage, const std::string& loop, const std::string& key,
                          const std::string& access) {
  apply({"unannotate", {{"stage", stage}, {"loop", loop}, {"key", key}, {"access", access}}});
}
void Schedule::fuse_reduction_epilogue(const std::string& stage, const std::string& producer) {
  apply({"fuse_reduction_epilogue", {{"stage", stage}, {"producer", producer}}});
}
void Schedule::group(const std::string& stage, const std::string& from, const std::string& consumer,
                     const std::string& loop) {
  apply({"group", {{"stage", stage}, {"from", from}, {"consumer", consumer}, {"at", loop}}});
}
void Schedule::sample_categorical(const std::string& stage, const std::string& loop, const std::string& key,
                                  const std::vector<int64_t>& values, const std::vector<int64_t>& weights,
                                  const std::vector<int64_t>& decision) {
  apply({"sample_categorical",
         {{"stage", stage},
          {"loop", loop},
          {"key", key},
          {"values", values},
          {"weights", weights},
          {"decision", decision}}});
}
void Schedule::sample_location(const std::string& stage, const std::string& consumer,
                               const std::vector<int64_t>& decision) {
  apply({"sample_location", {{"stage", stage}, {"consumer", consumer}, {"decision", decision}}});
}
void Schedule::sample_tile(const std::string& stage, const std::string& loop, const std::vector<std::string>& names,
                           int64_t max_inner, const std::vector<int64_t>& decision) {
  apply({"sample_tile",
         {{"stage", stage}, {"loop", loop}, {"names", names}, {"max_inner", max_inner}, {"decision", decision}}});
}
void Schedule::unit_loop(const std::string& stage, const std::string& name, const std::string& loop) {
  apply({"unit_loop", {{"stage", stage}, {"name", name}, {"loop", loop}}});
}
void Schedule::unsafe_set_dtype(const std::string& stage, const std::string& dtype) {
  apply({"unsafe_set_dtype", {{"stage", stage}, {"dtype", dtype}}});
}

std::string Schedule::to_string() const {
  std::string text;
  for (const Step& step : steps_) text += tensmith::to_string(step) + "\n";
  return text;
}

}  // namespace tensmith
