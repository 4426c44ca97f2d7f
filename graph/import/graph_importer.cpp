#include "graph/import/graph_importer.h"

#include <algorithm>

#include "graph/import/node_text.h"

namespace tensmith::graph {

namespace {

constexpr size_t kMaxWarnings = 50;

}  // namespace

void GraphImporter::run_main() {
  define_initializers();
  define_inputs();
  session_.result.open = open_sizes(editor_.graph());
  order_nodes();
  import_nodes();
  set_graph_outputs();
}

bool GraphImporter::run_subgraph(const std::vector<TensorType>& formals, const std::vector<std::string>& captures) {
  define_initializers();
  for (int k = 0; k < flat_.proto->input_size(); ++k) {
    const std::string& name = flat_.proto->input(k).name();
    define(name, {editor_.add_input(name, formals.at(static_cast<size_t>(k))), true});
  }
  const auto& mine = free_names(flat_, session_);
  for (const std::string& name : captures) {
    const Known* outer = outer_->find(name);
    const Value value = editor_.add_input(name, outer_->editor_.graph().type(outer->value));
    // Captures of a sibling come as inputs too, but their names may mean something else here.
    if (std::find(mine.begin(), mine.end(), name) != mine.end()) define(name, {value, true});
  }
  order_nodes();
  import_nodes();
  return set_graph_outputs() && complete_;
}

void GraphImporter::define(const std::string& name, Known known) {
  TS_USER_CHECK(values_.emplace(name, known).second, "duplicate-name")
      << "graph " << flat_.proto->name() << ": value '" << name << "': expected one definition, got two";
}

void GraphImporter::order_nodes() {
  // Producers by name first, so that errors are about names and not about the order of the file.
  std::unordered_map<std::string, int> producer;
  for (size_t n = 0; n < flat_.nodes.size(); ++n)
    for (const std::string& name : flat_.nodes[n].proto->output()) {
      if (name.empty()) continue;
      TS_USER_CHECK(!values_.count(name) && !initializers_.count(name) && !sparse_initializers_.count(name) &&
                        producer.emplace(name, static_cast<int>(n)).second,
                    "duplicate-name")
          << describe(*flat_.nodes[n].proto) << ": output '" << name
          << "': expected a new name, got one that is defined already";
    }
  std::vector<std::vector<int>> consumers(flat_.nodes.size());
  std::vector<int> missing(flat_.nodes.size(), 0);
  const auto depend = [&](size_t n, const std::string& name) {
    if (name.empty()) return;
    if (const auto found = producer.find(name); found != producer.end()) {
      consumers[found->second].push_back(static_cast<int>(n));
      ++missing[n];
      return;
    }
    TS_USER_CHECK(visible(name), "unknown-input")
        << describe(*flat_.nodes[n].proto) << ": input '" << name
        << "': expected the name of an input, initializer or node output, got one that nothing defines";
  };
  for (size_t n = 0; n < flat_.nodes.size(); ++n) {
    for (const std::string& name : flat_.nodes[n].proto->input()) depend(n, name);
    for (const auto& [attr, subgraph] : flat_.nodes[n].subgraphs)
      for (const std::string& name : free_names(*subgraph, session_)) depend(n, name);
  }
  // Kahn's algorithm; of the nodes that are ready the first in the file goes first.
  std::set<int> ready;
  for (size_t n = 0; n < flat_.nodes.size(); ++n)
    if (missing[n] == 0) ready.insert(static_cast<int>(n));
  while (!ready.empty()) {
    const int n = *ready.begin();
    ready.erase(ready.begin());
    order_.push_back(&flat_.nodes[static_cast<size_t>(n)]);
    for (int consumer : consumers[static_cast<size_t>(n)])
      if (--missing[static_cast<size_t>(consumer)] == 0) ready.insert(consumer);
  }
  for (size_t n = 0; n < flat_.nodes.size() && order_.size() < flat_.nodes.size(); ++n)
    TS_USER_CHECK(missing[n] <= 0, "cyclic-graph")
        << describe(*flat_.nodes[n].proto) << ": expected a graph without cycles, got a node that needs its own output";
}

void GraphImporter::import_nodes() {
  for (const FlatNode* node : order_) {
    try {
      import_node(*node);
    } catch (const InternalError&) {
      throw;
    } catch (const UserError& error) {
      // Errors of attribute access do not know the node.
      if (error.message().starts_with("node '")) throw;
      throw UserError(error.id(), describe(*node->proto) + ": " + error.message());
    }
  }
}

void GraphImporter::check_output_type(const onnx::ValueInfoProto& declared, Value value) {
  if (session_.result.warnings.size() >= kMaxWarnings || declared.type().tensor_type().elem_type() == 0) return;
  const auto& type = declared.type().tensor_type();
  const TensorType& inferred = editor_.graph().type(value);
  const auto dtype = onnx_dtype(type.elem_type());
  bool differs = !dtype || *dtype != inferred.dtype || (type.has_shape() && type.shape().dim_size() != inferred.rank());
  for (int k = 0; !differs && type.has_shape() && k < type.shape().dim_size(); ++k) {
    const auto* imm = inferred.shape[static_cast<size_t>(k)].as<IntImm>();
    differs = imm && type.shape().dim(k).has_dim_value() && type.shape().dim(k).dim_value() > 0 &&
              type.shape().dim(k).dim_value() != imm->value;
  }
  if (!differs) return;
  std::string text;
  for (const auto& dim : type.shape().dim())
    text += (text.empty() ? "" : ", ") + (dim.has_dim_value() ? std::to_string(dim.dim_value()) : dim.dim_param());
  session_.result.warnings.push_back("value '" + declared.name() + "': the model declares " +
                                     (dtype ? to_string(*dtype) : "?") + "[" + text + "], its operators give " +
                                     to_string(inferred));
}

bool GraphImporter::set_graph_outputs() {
  std::vector<Value> outputs;
  std::vector<std::string> names;
  TS_USER_CHECK(flat_.proto->output_size() > 0 || outer_, "not-a-model")
      << "graph " << flat_.proto->name() << ": expected outputs, got none";
  std::set<std::string> taken;
  for (const auto& declared : flat_.proto->output()) {
    const std::string& name = declared.name();
    TS_USER_CHECK(outer_ || taken.insert(name).second, "duplicate-name")
        << "graph output '" << name << "': expected one, got two of this name";
    const Known* known = find(name);
    TS_USER_CHECK(known, "unknown-input")
        << "graph output '" << name << "': expected the name of a value, got one that nothing defines";
    if (!known->typed) {
      complete_ = false;
      continue;
    }
    check_output_type(declared, known->value);
    outputs.push_back(known->value);
    names.push_back(name);
  }
  for (const auto& info : flat_.proto->value_info())
    if (const auto known = values_.find(info.name()); known != values_.end() && known->second.typed)
      check_output_type(info, known->second.value);
  editor_.set_outputs(std::move(outputs), std::move(names));
  return complete_;
}

}  // namespace tensmith::graph
