#include "apps/bench/tuning_program/runs.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <limits>

#include "apps/driver/compile.h"
#include "apps/driver/op_graph.h"
#include "apps/driver/tuning_tasks.h"
#include "runtime/base/error.h"

namespace tensmith::bench {

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

std::vector<double> CostTable::costs(const std::vector<const Candidate*>& candidates) {
  std::vector<std::string> names;
  std::map<int64_t, std::string> waiting;
  for (const Candidate* candidate : candidates) {
    names.push_back(candidate->schedule.to_string());
    if (!known_.try_emplace(names.back(), std::numeric_limits<double>::infinity()).second) continue;
    MeasureCandidate measured;
    measured.steps = candidate->schedule.steps();
    waiting[session_->submit(task_, std::move(measured))] = names.back();
  }
  while (!waiting.empty()) {
    const std::optional<MeasureResult> result = session_->wait(5);
    if (!result) continue;
    const auto at = waiting.find(result->id);
    if (at == waiting.end()) continue;
    ++measured_;
    failed_ += !result->valid();
    if (result->valid()) known_[at->second] = result->cost_us;
    waiting.erase(at);
  }
  std::vector<double> costs;
  for (const std::string& name : names) costs.push_back(known_.at(name));
  return costs;
}

void CostTable::correct(const Candidate& candidate, double cost_us) {
  known_[candidate.schedule.to_string()] = cost_us;
}

std::vector<Trial> run_search(TaskSearch& search, int64_t trials, CostTable& table,
                              const std::function<bool(const std::vector<Trial>&)>& until) {
  constexpr int64_t kBatch = 8;
  constexpr size_t kUnderWay = 2;
  std::vector<Trial> made;
  std::deque<std::vector<Proposal>> batches;
  int64_t proposed = 0;
  while (true) {
    while (batches.size() < kUnderWay && proposed < trials) {
      std::vector<Proposal> batch = search.propose(static_cast<int>(std::min(kBatch, trials - proposed)));
      if (batch.empty()) break;
      proposed += static_cast<int64_t>(batch.size());
      batches.push_back(std::move(batch));
    }
    if (batches.empty()) return made;
    const std::vector<Proposal> batch = std::move(batches.front());
    batches.pop_front();
    std::vector<const Candidate*> candidates;
    for (const Proposal& proposal : batch) candidates.push_back(proposal.candidate.get());
    const std::vector<double> costs = table.costs(candidates);
    for (size_t k = 0; k < batch.size(); ++k) {
      search.tell(batch[k], costs[k]);
      made.push_back({batch[k].candidate, batch[k].origin, costs[k]});
    }
    if (until && until(made)) return made;
  }
}

std::vector<std::shared_ptr<const Candidate>> best_of(const std::vector<Trial>& trials, size_t count) {
  constexpr size_t kFinalists = 3;
  constexpr double kNearBest = 1.03;
  std::vector<const Trial*> valid;
  for (size_t k = 0; k < std::min(count, trials.size()); ++k)
    if (std::isfinite(trials[k].cost_us)) valid.push_back(&trials[k]);
  std::stable_sort(valid.begin(), valid.end(), [](const Trial* a, const Trial* b) { return a->cost_us < b->cost_us; });
  std::vector<std::shared_ptr<const Candidate>> best;
  for (const Trial* trial : valid)
    if (best.size() < kFinalists && trial->cost_us <= kNearBest * valid[0]->cost_us) best.push_back(trial->candidate);
  return best;
}

}  // namespace tensmith::bench
