#include "apps/driver/choices.h"

#include <algorithm>

#include "autotune/measure/timing.h"
#include "graph/op_def.h"
#include "runtime/base/quantile.h"
#include "runtime/base/sha256.h"

namespace tensmith {

namespace {

constexpr size_t kDigits = 16;

/// Operators and types of a graph without names and weights, which a retrained or exported model may have anew.
std::string structure_of(const graph::Graph& graph) {
  Sha256 hash;
  std::map<graph::NodeId, std::string> numbers;
  for (const graph::NodeId id : graph.topological_order()) {
    const graph::Node& node = graph.node(id);
    numbers.emplace(id, std::to_string(numbers.size()));
    std::string line = node.op->domain + "." + node.op->name;
    for (const graph::Value& input : node.inputs)
      line += " " + (input.given() ? numbers.at(input.node) + ":" + std::to_string(input.output) : std::string("-"));
    for (const graph::TensorType& type : node.types) line += " " + to_string(type);
    hash.update(line + "\n");
  }
  return hash.hex().substr(0, kDigits);
}

/// How often a run calls each kernel, by what the kernel is.
std::map<std::string, double> calls_of(const CompiledProgram& program, std::vector<std::string>& names) {
  for (const CompiledKernel& kernel : program.kernels) {
    const RecordKey key = record_key(kernel.schedule.workload(), kernel.request);
    std::string name = key.workload;
    for (const auto* layouts : {&key.input_layouts, &key.output_layouts})
      for (const std::string& layout : *layouts) name += "|" + layout;
    names.push_back(std::move(name));
  }
  std::map<std::string, double> calls;
  for (const KernelCall& call : program.calls) calls[names[static_cast<size_t>(call.kernel)]] += 1;
  return calls;
}

std::vector<double> sums_of(const InModelTimes& times, const std::vector<size_t>& kernels) {
  std::vector<double> sums(times.whole_us.size(), 0);
  for (const size_t kernel : kernels)
    for (size_t round = 0; round < sums.size(); ++round) sums[round] += times.kernel_us[kernel][round];
  return sums;
}

}  // namespace

RecordKey choice_key(const std::string& structure, const graph::ChoiceSite& site, int threads,
                     const RecordArithmetic& arithmetic) {
  return {"choice in model " + structure + ": " + site.name, {}, {}, threads, arithmetic};
}

ChoiceMaker::ChoiceMaker(const graph::Graph& graph, const CompileOptions& options) : options_(options) {
  made_.structure = structure_of(graph);
}

size_t ChoiceMaker::choose(const graph::ChoiceSite& site) {
  if (const auto at = known_.find(site.name); at != known_.end()) return made_.list[at->second].taken;
  MadeChoice made{site, site.by_price, false, {}};
  if (options_.records) {
    const RecordKey key =
        choice_key(made_.structure, site, options_.threads, {options_.fast_math, options_.contract_fma});
    const RecordFound found = options_.records->best(key, origin_here(options_.target), options_.other_builds);
    made.tuning = found.record ? found.reason : "no record of this choice in a model of this structure";
    if (found.record) {
      const auto way = std::find(site.ways.begin(), site.ways.end(), found.record->way);
      made.is_tuned = way != site.ways.end();
      if (made.is_tuned) made.taken = static_cast<size_t>(way - site.ways.begin());
      else made.tuning = "refused: " + found.reason + ": expected one of the ways here, got " + found.record->way;
    }
  }
  known_.emplace(site.name, made_.list.size());
  made_.list.push_back(std::move(made));
  return made_.list.back().taken;
}

std::string choice_list(const MadeChoices& choices) {
  std::string text;
  for (const MadeChoice& choice : choices.list) {
    text += choice.site.name + ": " + choice.site.ways[choice.taken];
    std::string others;
    for (size_t way = 0; way < choice.site.ways.size(); ++way)
      if (way != choice.taken) others += (others.empty() ? " (not " : ", ") + choice.site.ways[way];
    text += others + ")" + (choice.is_tuned ? ", as tuned: " : ", by estimate") +
            (choice.is_tuned || choice.tuning.empty() ? "" : ": ") + choice.tuning + "\n";
  }
  return text;
}

std::vector<size_t> kernels_apart(const CompiledProgram& a, const CompiledProgram& b) {
  std::vector<std::string> names, others;
  const std::map<std::string, double> calls = calls_of(a, names), of_other = calls_of(b, others);
  std::vector<size_t> apart;
  for (size_t kernel = 0; kernel < names.size(); ++kernel) {
    const auto at = of_other.find(names[kernel]);
    if (at == of_other.end() || at->second != calls.at(names[kernel])) apart.push_back(kernel);
  }
  return apart;
}

ChoiceVerdict judge_choice(const CompiledProgram& usual, const InModelTimes& usual_times, const CompiledProgram& other,
                           const InModelTimes& other_times) {
  ChoiceVerdict verdict;
  verdict.usual_us = sums_of(usual_times, kernels_apart(usual, other));
  verdict.other_us = sums_of(other_times, kernels_apart(other, usual));
  std::vector<double> ratios, saved;
  for (size_t round = 0; round < std::min(verdict.usual_us.size(), verdict.other_us.size()); ++round) {
    if (!(verdict.other_us[round] > 0)) continue;
    ratios.push_back(verdict.usual_us[round] / verdict.other_us[round]);
    saved.push_back(verdict.usual_us[round] - verdict.other_us[round]);
  }
  if (ratios.empty()) return verdict;
  const MedianInterval ratio = median_interval(std::move(ratios));
  verdict.gain = ratio.median;
  verdict.saved_us = median_interval(std::move(saved)).median;
  verdict.is_better = ratio.low > 1;
  return verdict;
}

}  // namespace tensmith
