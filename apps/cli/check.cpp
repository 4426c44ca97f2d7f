#include <nlohmann/json.hpp>

#include <iostream>
#include <map>

#include "apps/cli/commands.h"
#include "apps/cli/model.h"
#include "graph/cost.h"
#include "graph/op_def.h"
#include "graph/partition/support.h"
#include "graph/pipeline.h"
#include "runtime/base/config.h"
#include "runtime/base/sha256.h"

namespace tensmith::cli {

int check(const Options& options) {
  LoadedModel model;
  model.digest = take(sha256_file(options.model));
  graph::ImportResult imported = import_model(options);
  bool is_open = false;
  // What the compiler itself would refuse, after the passes that fold and decompose.
  if (imported.ok()) {
    graph::Graph optimised = imported.graph.clone();
    graph::optimize(optimised, graph::pipeline_options(*config(), options.opt_level));
    for (graph::NodeId id : optimised.inputs) is_open = is_open || !optimised.type({id, 0}).is_static();
    // While sizes of inputs are open, what follows from them is no fault of the model.
    for (graph::UnsupportedRow& row : graph::unsupported_nodes(optimised).rows)
      if (!is_open || !row.id.starts_with("dynamic-")) imported.unsupported.add(std::move(row));
  }
  Json json = json_header(provenance("tensmith.check/1", options, model, 0));
  json["model"] = imported.info.name;
  json["producer"] = imported.info.producer;
  json["opsets"] = imported.info.opsets;
  json["supported"] = imported.ok();
  json["unsupported"] = to_json(imported.unsupported);
  json["warnings"] = imported.warnings;
  const bool needs_sizes = imported.needs_sizes();
  json["needs_sizes"] = needs_sizes;
  Json open_dims = Json::array();
  for (const Var& dim : imported.graph.dims) open_dims.push_back(dim.name());
  json["open_dims"] = open_dims;
  if (needs_sizes) {
    // Whether these nodes can be compiled follows from the sizes: the model is neither supported nor refused.
    if (options.json) std::cout << json_text(json);
    else std::cout << "open sizes decide whether these nodes can be compiled:\n" << to_string(imported.unsupported);
    throw UserError("symbolic-dims", "model: expected sizes that are known when checking, got open ones of inputs " +
                                         imported.open.inputs + "; give " + imported.open.dims);
  }
  if (!imported.ok()) {
    if (options.json) std::cout << json_text(json);
    else std::cout << "not supported yet:\n" << to_string(imported.unsupported);
    return 3;
  }
  std::map<std::string, int> ops;
  double flops = 0, weights = 0;
  bool is_static = true;
  for (graph::NodeId id : imported.graph.topological_order()) {
    const graph::Node& node = imported.graph.node(id);
    if (node.op->name == "Constant") {
      weights += static_cast<double>(imported.graph.constant({id, 0})->num_bytes());
      continue;
    }
    for (const graph::TensorType& type : node.types) is_static = is_static && type.is_static();
    if (node.op->name == "Input") continue;
    ++ops[node.op->name];
    if (is_static) flops += graph::flops_of(imported.graph, node);
  }
  const auto ports = [&](const auto& ids, auto name) {
    Json list = Json::array();
    for (size_t k = 0; k < ids.size(); ++k) list.push_back(name(k));
    return list;
  };
  json["inputs"] = ports(imported.graph.inputs, [&](size_t k) {
    return imported.graph.value_name({imported.graph.inputs[k], 0}) + ": " +
           to_string(imported.graph.node(imported.graph.inputs[k]).types[0]);
  });
  json["outputs"] = ports(imported.graph.outputs, [&](size_t k) {
    return imported.graph.output_names[k] + ": " + to_string(imported.graph.type(imported.graph.outputs[k]));
  });
  json["ops"] = ops;
  json["weight_bytes"] = weights;
  json["flops"] = is_static ? Json(flops) : Json();
  if (options.json) {
    std::cout << json_text(json);
    return 0;
  }
  int64_t operators = 0;
  for (const auto& [op, count] : ops) operators += count;
  std::cout << "supported: " << operators << (operators == 1 ? " node, " : " nodes, ") << weights / 1e6
            << " MB of weights";
  if (is_static) std::cout << ", " << flops / 1e9 << " GFLOP";
  std::cout << "\n";
  for (const auto& text : json["inputs"]) std::cout << "input  " << text.get<std::string>() << "\n";
  for (const auto& text : json["outputs"]) std::cout << "output " << text.get<std::string>() << "\n";
  if (is_open) {
    std::cout << "open   ";
    for (const auto& dim : open_dims) std::cout << " " << dim.get<std::string>();
    std::cout << ": compiling needs a size for each (--dim NAME=SIZE); check with them to be sure\n";
  }
  for (const auto& [name, count] : ops) std::cout << "  " << count << " x " << name << "\n";
  for (const std::string& warning : imported.warnings) std::cout << "warning: " << warning << "\n";
  return 0;
}

}  // namespace tensmith::cli
