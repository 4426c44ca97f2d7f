#include "apps/bench/tuning_program/draw.h"

#include <nlohmann/json.hpp>
#include <set>

#include "apps/bench/tuning_program/parts.h"

namespace tensmith::bench {

std::vector<std::shared_ptr<const Candidate>> drawn_candidates(BenchTask& task, int count) {
  Rng rng(1, task.op);
  std::vector<std::shared_ptr<const Candidate>> drawn{task.usual}, parents{task.usual};
  task.costs({task.usual.get()}, "draw");
  std::set<std::string> seen{BenchTask::key_of(*task.usual)};
  for (int k = 0; static_cast<int>(drawn.size()) < count && k < 6 * count; ++k) {
    // Searches compare what they draw and what they derive from good ones.
    Result<Candidate> made = k % 4 == 0   ? sample(task.space, rng, Draw::kUniform)
                             : k % 4 == 1 ? sample(task.space, rng, Draw::kByCost)
                                          : mutate(task.space, *parents[rng.below(parents.size())], rng, 1 + k % 3);
    if (!made || !seen.insert(BenchTask::key_of(*made)).second) continue;
    drawn.push_back(std::make_shared<const Candidate>(std::move(made).value()));
    if (task.costs({drawn.back().get()}, "draw")[0] < 1.5) parents.push_back(drawn.back());
  }
  return drawn;
}

Json draw(const PartOptions& options, CostStore& store) {
  Json json = Json::array();
  for (const std::string& op : options.ops) {
    BenchTask task(op, options.threads, store);
    const size_t count = drawn_candidates(task, options.count).size();
    json.push_back({{"op", op}, {"candidates", count}, {"measured", task.measured()}, {"failed", task.failed()}});
  }
  return json;
}

}  // namespace tensmith::bench
