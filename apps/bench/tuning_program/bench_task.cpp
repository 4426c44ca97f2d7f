#include "apps/bench/tuning_program/bench_task.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "apps/driver/compile.h"
#include "apps/driver/op_graph.h"
#include "apps/driver/tuning_tasks.h"
#include "runtime/base/error.h"
#include "runtime/base/quantile.h"
#include "runtime/base/sha256.h"

namespace tensmith::bench {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::string short_digest(const std::string& text) { return sha256_hex(text).substr(0, 16); }

std::shared_ptr<const Candidate> default_of(const Space& space) {
  PreferredChooser preferred;
  return std::make_shared<const Candidate>(space.make(preferred).value());
}

/// `OP@THREADS` or just OP.
TuningTask task_of(const std::string& name, int threads) {
  const size_t at = name.rfind('@');
  return task_of_op(name.substr(0, at), at == std::string::npos ? threads : std::atoi(name.c_str() + at + 1));
}

}  // namespace

TuningTask task_of_op(const std::string& op, int threads) {
  Result<graph::Graph> made = graph_of_op(op);
  if (!made) throw UserError(made.failure().id, made.failure().message);
  graph::Graph graph = std::move(made).value();
  CompileOptions options;
  options.threads = threads;
  const CompiledProgram program = compile_graph(graph, options);
  std::vector<TuningTask> tasks = tuning_tasks(program, options.fast_math, options.contract_fma);
  TS_CHECK(!tasks.empty()) << op;
  const auto work = [](const TuningTask& task) { return task.weight * std::max(task.flops, task.bytes); };
  return *std::max_element(tasks.begin(), tasks.end(),
                           [&](const TuningTask& a, const TuningTask& b) { return work(a) < work(b); });
}

SessionOptions session_options() {
  SessionOptions options;
  const std::string tool = (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "tensmith").string();
  options.worker = {tool, "worker", "--stdio"};
  return options;
}

double median_of(const std::vector<double>& values, size_t skipped) {
  if (values.size() <= skipped) return kNever;
  std::vector<double> sorted(values.begin() + static_cast<std::ptrdiff_t>(skipped), values.end());
  std::sort(sorted.begin(), sorted.end());
  return quantile(sorted, 0.5);
}

BenchTask::BenchTask(const std::string& name, int threads, CostStore& store)
    : op(name),
      task(task_of(name, threads)),
      space(task.workload, task.request),
      usual(default_of(space)),
      store_(store) {
  key_ = short_digest(to_text(task.workload) + "|" + std::to_string(task.request.threads) + "|" +
                      to_string(task.request.target) + "|" + usual->schedule.to_string());
  known_ = &store.of(key_);
}

std::string BenchTask::key_of(const Candidate& candidate) { return short_digest(candidate.schedule.to_string()); }

std::shared_ptr<const Candidate> BenchTask::remake(const std::string& key, const KnownCost& cost) const {
  Result<Candidate> made = replay_decisions(space, cost.decisions);
  if (!made || key_of(*made) != key) return nullptr;
  return std::make_shared<const Candidate>(std::move(made).value());
}

void BenchTask::start() {
  if (session_) return;
  session_ = std::make_unique<MeasureSession>(session_options());
  number_ = session_->add_task({task.workload, task.request, false, true, task.cold_bytes, 0}).value();
  const MeasureResult result = measure_now(*usual, true);
  TS_CHECK(result.valid()) << op << ": the default: " << result.message;
  default_us_ = result.cost_us;
}

MeasureResult BenchTask::measure_now(const Candidate& candidate, bool as_incumbent) {
  MeasureCandidate measured;
  measured.steps = candidate.schedule.steps();
  measured.thorough = true;
  measured.make_incumbent = as_incumbent;
  const int64_t id = session_->submit(number_, std::move(measured));
  while (true)
    if (std::optional<MeasureResult> result = session_->wait(5); result && result->id == id) return std::move(*result);
}

std::vector<double> BenchTask::costs(const std::vector<const Candidate*>& candidates, const std::string& origin) {
  std::vector<std::string> keys;
  std::map<int64_t, size_t> waiting;
  std::set<std::string> under_way;
  for (size_t k = 0; k < candidates.size(); ++k) {
    keys.push_back(key_of(*candidates[k]));
    const auto at = known_->find(keys[k]);
    if ((at != known_->end() && at->second.ratio > 0) || !under_way.insert(keys[k]).second) continue;
    start();
    MeasureCandidate measured;
    measured.steps = candidates[k]->schedule.steps();
    waiting[session_->submit(number_, std::move(measured))] = k;
  }
  while (!waiting.empty()) {
    const std::optional<MeasureResult> result = session_->wait(5);
    if (!result) continue;
    const auto at = waiting.find(result->id);
    if (at == waiting.end()) continue;
    ++measured_;
    failed_ += !result->valid();
    const double ratio = result->valid() ? result->cost_us / default_us_ : kNever;
    store_.add(key_, op, keys[at->second], {candidates[at->second]->decisions, origin, ratio, {}});
    waiting.erase(at);
  }
  std::vector<double> costs;
  for (const std::string& key : keys) costs.push_back(known_->at(key).ratio);
  return costs;
}

double BenchTask::cost(const Candidate& candidate) const { return known_->at(key_of(candidate)).ratio; }

const std::vector<double>& BenchTask::finals(const Candidate& candidate) const {
  return known_->at(key_of(candidate)).finals;
}

void BenchTask::compare(const std::vector<const Candidate*>& candidates, int rounds) {
  std::map<std::string, const Candidate*> field;
  for (const Candidate* candidate : candidates) field[key_of(*candidate)] = candidate;
  const std::string default_key = key_of(*usual);
  field.erase(default_key);
  const auto of_key = [&](const std::string& key) -> KnownCost& { return (*known_)[key]; };
  const auto needs = [&](const std::string& key) { return of_key(key).finals.size() < static_cast<size_t>(rounds); };
  const Candidate* first = nullptr;
  double least = kNever;
  for (const auto& [key, candidate] : field) {
    const KnownCost& cost = of_key(key);
    const double so_far = cost.finals.empty() ? cost.ratio : median_of(cost.finals);
    if (so_far < least) {
      least = so_far;
      first = candidate;
    }
  }
  for (int round = 0; round < rounds && first; ++round) {
    std::vector<std::pair<std::string, const Candidate*>> those;
    for (const auto& [key, candidate] : field)
      if (needs(key)) those.emplace_back(key, candidate);
    if (those.empty()) return;
    start();
    const auto begin = [&] { return measure_now(*first, true); };
    MeasureResult incumbent = begin();
    // Faster beyond doubt than what was thought the best: it would become the incumbent, but here one is for all.
    const auto ratio_of = [&](const Candidate& candidate) {
      const MeasureResult result = measure_now(candidate, false);
      const bool is_compared = result.valid() && result.timing.ratio > 0 && result.incumbent == incumbent.id;
      if (const auto now = session_->incumbent(number_); !now || now->id != incumbent.id) incumbent = begin();
      return is_compared ? result.timing.ratio : kNever;
    };
    const double of_default = ratio_of(*usual);
    if (!std::isfinite(of_default) || !incumbent.valid()) continue;
    for (const auto& [key, candidate] : those) {
      const double own = candidate == first ? 1 : ratio_of(*candidate);
      store_.add_final(key_, key, own / of_default);
    }
  }
}

double BenchTask::default_to_itself() {
  start();
  if (!measure_now(*usual, true).valid()) return kNever;
  const MeasureResult result = measure_now(*usual, false);
  return result.valid() && result.timing.ratio > 0 ? result.timing.ratio : kNever;
}

}  // namespace tensmith::bench
