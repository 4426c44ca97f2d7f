#include "graph/import/specialize.h"

#include <algorithm>
#include <unordered_set>

#include "graph/op_def.h"
#include "graph/ops/data_shape.h"

namespace tensmith::graph {

namespace {

constexpr int64_t kMostElements = 1024;  // more than any shape, list of axes or set of scales holds

/// Data can decide a shape too, but whoever gives small integers means sizes: floats are given back first, larger
/// arrays before smaller ones.
bool more_like_data(const Constant& a, const Constant& b) {
  if (a.dtype().is_float() != b.dtype().is_float()) return a.dtype().is_float();
  return a.num_elements() > b.num_elements();
}

/// Whether a result whose size its data decide (NonZero, Unique) comes from one of the fixed inputs: to fix that one
/// would be to evaluate the model, not to compile it. Numbers that steer (scalars) are none of its data.
bool evaluates(const Graph& graph, const std::map<std::string, Constant>& fixed) {
  std::unordered_set<NodeId> given;
  for (NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    bool from_given = graph.constant({id, 0}) && fixed.count(graph.value_name({id, 0}));
    bool data = false;
    for (const Value& input : node.inputs) {
      if (!input.given() || !given.count(input.node)) continue;
      from_given = true;
      data = data || graph.type(input).rank() > 0;
    }
    if (from_given) given.insert(id);
    if (data && ops::has_data_shape(*node.op)) return true;
  }
  return false;
}

/// The result, or nothing where it is not complete or wrong for these values.
std::optional<ImportResult> complete_import(const std::string& path, const ImportOptions& options) {
  try {
    ImportResult result = import_onnx(path, options);
    if (has_known_shapes(result) && !evaluates(result.graph, options.constants)) return result;
  } catch (const UserError&) {
    // A value that does not fit is reported by the run on the graph as it stands.
  }
  return std::nullopt;
}

}  // namespace

bool has_known_shapes(const ImportResult& result) {
  if (!result.ok()) return false;
  for (NodeId id : result.graph.topological_order())
    for (const TensorType& type : result.graph.node(id).types)
      if (!type.is_static()) return false;
  return true;
}

std::optional<SpecializedImport> specialize_shapes(const std::string& path, const ImportOptions& options,
                                                   const std::map<std::string, Constant>& given) {
  ImportOptions trial = options;
  std::vector<std::string> order;
  for (const auto& [name, value] : given) {
    if (value.num_elements() > kMostElements || trial.constants.count(name)) continue;
    trial.constants.emplace(name, value);
    order.push_back(name);
  }
  std::optional<ImportResult> best = complete_import(path, trial);
  if (!best || order.empty()) return std::nullopt;
  std::stable_sort(order.begin(), order.end(), [&](const std::string& a, const std::string& b) {
    return more_like_data(given.at(a), given.at(b));
  });
  for (const std::string& name : order) {
    trial.constants.erase(name);
    if (auto without = complete_import(path, trial)) best = std::move(without);
    else trial.constants.emplace(name, given.at(name));
  }
  SpecializedImport result{std::move(*best), {}};
  for (const auto& [name, value] : given)
    if (trial.constants.count(name) && !options.constants.count(name)) result.fixed.push_back(name);
  return result;
}

}  // namespace tensmith::graph
