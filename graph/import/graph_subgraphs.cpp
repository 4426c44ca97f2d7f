// Branches and loop bodies.
#include <algorithm>

#include "graph/import/graph_importer.h"
#include "graph/import/node_text.h"
#include "graph/inline.h"
#include "graph/known_value.h"

namespace tensmith::graph {

const std::vector<std::string>& free_names(const FlatGraph& flat, ImportSession& session) {
  if (const auto known = session.free_names.find(&flat); known != session.free_names.end()) return known->second;
  std::set<std::string> defined, seen;
  std::vector<std::string> names;
  for (const auto& input : flat.proto->input()) defined.insert(input.name());
  for (const auto& tensor : flat.proto->initializer()) defined.insert(tensor.name());
  for (const auto& tensor : flat.proto->sparse_initializer()) defined.insert(tensor.values().name());
  for (const FlatNode& node : flat.nodes)
    for (const std::string& output : node.proto->output()) defined.insert(output);
  const auto read = [&](const std::string& name) {
    if (!name.empty() && !defined.count(name) && seen.insert(name).second) names.push_back(name);
  };
  for (const FlatNode& node : flat.nodes) {
    for (const std::string& input : node.proto->input()) read(input);
    for (const auto& [attr, subgraph] : node.subgraphs)
      for (const std::string& name : free_names(*subgraph, session)) read(name);
  }
  for (const auto& output : flat.proto->output()) read(output.name());
  return session.free_names[&flat] = std::move(names);
}

std::vector<TensorType> GraphImporter::formal_types(const FlatNode& node, const FlatGraph& body, const NodeForm& form) {
  std::vector<TensorType> types;
  const auto type_of = [&](size_t i) {
    return i < form.inputs.size() && form.inputs[i].given() ? editor_.graph().type(form.inputs[i])
                                                            : TensorType{kBool, {}, {}};
  };
  const int count = body.proto->input_size();
  const std::string& op = node.proto->op_type();
  // What a turn works on must be there; only the count and the condition of a Loop may be left out.
  const bool loop = op == "Loop" || (op == "Scan" && form.opset >= 9);
  for (int k = op == "Loop" ? 2 : 0; loop && k < count; ++k)
    TS_USER_CHECK(static_cast<size_t>(k) < form.inputs.size() && form.inputs[static_cast<size_t>(k)].given(),
                  "bad-arity")
        << describe(*node.proto) << ": input " << k << ": expected a value for input '" << body.proto->input(k).name()
        << "' of the body, got none; correct the model";
  if (op == "Loop") {
    // Iteration number, condition, then what the loop carries.
    for (int k = 0; k < count; ++k)
      types.push_back(k == 0   ? static_type(kInt64, {})
                      : k == 1 ? static_type(kBool, {})
                               : type_of(static_cast<size_t>(k)));
  } else if (op == "Scan") {
    const int64_t scans = form.attrs.get_int("num_scan_inputs", 0);
    TS_USER_CHECK(scans >= 0 && scans <= count, "bad-attribute")
        << describe(*node.proto) << ": attribute num_scan_inputs: expected 0 to " << count
        << ", the inputs of the body, got " << scans << "; correct the model";
    const std::vector<int64_t> axes = form.attrs.get_ints("scan_input_axes");
    for (int k = 0; k < count; ++k) {
      TensorType type = type_of(static_cast<size_t>(k));
      if (const int64_t scan = k - (count - scans); scan >= 0 && type.rank() > 0) {
        int64_t axis = scan < static_cast<int64_t>(axes.size()) ? axes[static_cast<size_t>(scan)] : 0;
        if (axis < 0) axis += type.rank();
        if (axis >= 0 && axis < type.rank()) type.shape.erase(type.shape.begin() + axis);
      }
      type.value.clear();
      types.push_back(std::move(type));
    }
  } else {
    for (int k = 0; k < count; ++k) types.push_back(type_of(static_cast<size_t>(k)));
  }
  for (TensorType& type : types) type.value.clear();
  return types;
}

std::optional<std::vector<std::string>> GraphImporter::captures_of(const FlatNode& node,
                                                                   const std::vector<const FlatGraph*>& subgraphs) {
  std::vector<std::string> captures;
  for (const FlatGraph* subgraph : subgraphs)
    for (const std::string& name : free_names(*subgraph, session_)) {
      if (std::find(captures.begin(), captures.end(), name) != captures.end() || outer_constant(name)) continue;
      const Known* known = find(name);
      if (known && !known->typed) {
        for (const auto& [attr, graph] : node.subgraphs) report_subgraph_ops(*graph);
        return std::nullopt;
      }
      TS_USER_CHECK(known, "unknown-input")
          << describe(*node.proto) << ": value '" << name << "' of a subgraph is not defined";
      if (!editor_.graph().constant(known->value)) captures.push_back(name);
    }
  return captures;
}

bool GraphImporter::import_taken_branch(const FlatNode& node, const NodeForm& form) {
  if (form.op != "If" || !form.domain.empty() || form.inputs.empty() || !form.inputs[0].given()) return false;
  const std::optional<Constant> condition = known_value(editor_.graph(), form.inputs[0]);
  if (!condition || condition->num_elements() != 1) return false;
  for (const auto& [attr, subgraph] : node.subgraphs) {
    if (attr != (condition->int_at(0) != 0 ? "then_branch" : "else_branch")) continue;
    const auto captures = captures_of(node, {subgraph.get()});
    Graph branch;
    branch.name = subgraph->proto->name();
    if (!captures || !GraphImporter(session_, *subgraph, branch, this).run_subgraph({}, *captures)) {
      give_up(node);
      return true;
    }
    std::vector<Value> inputs;
    for (const std::string& name : *captures) inputs.push_back(find(name)->value);
    finish(node, inline_graph(editor_, branch, inputs, form.name));
    return true;
  }
  return false;
}

bool GraphImporter::read_subgraphs(const FlatNode& node, NodeForm& form) {
  std::vector<const FlatGraph*> subgraphs;
  for (const auto& [attr, subgraph] : node.subgraphs) subgraphs.push_back(subgraph.get());
  const auto captures = captures_of(node, subgraphs);
  if (!captures) return false;
  bool complete = true;
  for (const auto& [attr, subgraph] : node.subgraphs) {
    auto graph = std::make_shared<Graph>();
    graph->name = subgraph->proto->name();
    try {
      complete &=
          GraphImporter(session_, *subgraph, *graph, this).run_subgraph(formal_types(node, *subgraph, form), *captures);
    } catch (const UserError& error) {
      // A branch may be wrong for these sizes because it is never taken with them.
      if (form.op != "If") throw;
      report(node, "unsupported-branch", attr + " does not fit: " + error.message(),
             "make the input that decides a constant, or give other sizes with --dim");
      complete = false;
    }
    form.attrs.set(attr, std::move(graph));
  }
  complete_ &= complete;
  // Count and condition of a Loop may be left out at the end; captures stand behind their places.
  if (form.op == "Loop" && form.inputs.size() < 2) form.inputs.resize(2);
  for (const std::string& name : *captures) form.inputs.push_back(find(name)->value);
  form.attrs.set("captures", static_cast<int64_t>(captures->size()));
  return complete;
}

}  // namespace tensmith::graph
