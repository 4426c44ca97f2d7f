#include "graph/import/graph_importer.h"

#include <algorithm>

#include "graph/import/attribute_proto.h"
#include "graph/inline.h"
#include "graph/known_value.h"
#include "runtime/base/shape.h"

namespace tensmith::graph {

namespace {

constexpr size_t kMaxWarnings = 50;

std::string normal_domain(const std::string& domain) { return domain == "ai.onnx" ? std::string() : domain; }

std::string node_name(const onnx::NodeProto& proto) {
  if (!proto.name().empty()) return proto.name();
  for (const std::string& output : proto.output())
    if (!output.empty()) return output;
  return proto.op_type();
}

std::string describe(const onnx::NodeProto& proto) {
  return "node '" + node_name(proto) + "' (" + proto.op_type() + ")";
}

[[noreturn]] void refuse(const Failure& failure) { throw UserError(failure.id, failure.message); }

/// Ids of type rules that say "correct, but not supported" rather than "wrong".
bool is_unsupported(const std::string& id) { return id.starts_with("unsupported-") || id.starts_with("dynamic-"); }

std::string way_out_for(const std::string& id) {
  if (id.starts_with("dynamic-")) return "give open dims a size with --dim NAME=SIZE";
  if (id == "unsupported-dtype") return "convert the model to float32 or another listed type";
  return "rewrite this part of the model with supported operators";
}

std::string way_out_for_op(const std::string& op, const std::string& domain) {
  if (domain == "com.microsoft" || domain.starts_with("com.microsoft."))
    return "export the model without ONNX Runtime's optimiser";
  if (domain == "ai.onnx.ml") return "export classical models as tensor operators, for example with hummingbird";
  if (domain.starts_with("ai.onnx.")) return "export the model for inference";
  if (!domain.empty())
    return "export the model with operators of the default domain, or with a local function for this one";
  if (op.find("Sequence") != std::string::npos) return "replace sequences by tensors (Concat, Split, Gather)";
  if (op.find("Random") != std::string::npos || op == "Bernoulli" || op == "Multinomial")
    return "make random numbers an input of the model";
  if (op.find("String") != std::string::npos || op == "TfIdfVectorizer")
    return "do text processing in front of the model";
  return "rewrite this part of the model with supported operators";
}

}  // namespace

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

void GraphImporter::run_main() {
  define_initializers();
  define_inputs();
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

void GraphImporter::define_initializers() {
  for (onnx::TensorProto& tensor : *flat_.proto->mutable_initializer())
    TS_USER_CHECK(initializers_.emplace(tensor.name(), &tensor).second, "duplicate-name")
        << "graph " << flat_.proto->name() << ": initializer '" << tensor.name()
        << "': expected one definition, got two";
  for (onnx::SparseTensorProto& tensor : *flat_.proto->mutable_sparse_initializer())
    TS_USER_CHECK(!initializers_.count(tensor.values().name()) &&
                      sparse_initializers_.emplace(tensor.values().name(), &tensor).second,
                  "duplicate-name")
        << "graph " << flat_.proto->name() << ": initializer '" << tensor.values().name()
        << "': expected one definition, got two";
  for (const auto& info : flat_.proto->value_info()) declared_.emplace(info.name(), &info);
  for (const auto& info : flat_.proto->output()) declared_.emplace(info.name(), &info);
  for (const FlatNode& node : flat_.nodes) {
    for (const std::string& name : node.proto->input()) ++reads_[name];
    for (const auto& [attr, subgraph] : node.subgraphs)
      for (const std::string& name : free_names(*subgraph, session_)) ++reads_[name];
  }
  for (const auto& output : flat_.proto->output()) ++reads_[output.name()];
}

Expr GraphImporter::input_dim(const std::string& input, int axis, const onnx::TensorShapeProto::Dimension& dim) {
  const std::string place = input + "." + std::to_string(axis);
  const auto& sizes = session_.options.dims;
  if (dim.has_dim_value() && dim.dim_value() >= 0) {
    TS_USER_CHECK(dim.dim_value() <= kMaxDim, "bad-shape")
        << "input " << input << ": dim " << axis << ": expected at most 2^40, got " << dim.dim_value();
    return dim.dim_value();
  }
  // Writers mark a dim without a name as "?" or as a negative size.
  const bool named = !dim.dim_param().empty() && dim.dim_param() != "?";
  for (const std::string& key : {place, dim.dim_param()}) {
    const auto size = sizes.find(key);
    if (size == sizes.end()) continue;
    session_.used_dims.insert(key);
    TS_USER_CHECK(size->second >= 0 && size->second <= kMaxDim, "bad-dim")
        << "dim " << key << ": expected 0 to 2^40, got " << size->second;
    if (named) session_.used_dims.insert(dim.dim_param());
    return size->second;
  }
  if (const auto shape = session_.options.input_shapes.find(input);
      shape != session_.options.input_shapes.end() && axis < static_cast<int>(shape->second.size()))
    return shape->second[static_cast<size_t>(axis)];
  return editor_.dim(named ? dim.dim_param() : place);
}

std::optional<Expr> GraphImporter::known_dim(const std::string& name) const {
  for (const Var& dim : editor_.graph().dims)
    if (dim.name() == name) return Expr(dim);
  return std::nullopt;
}

std::optional<TensorType> GraphImporter::declared_type(const onnx::ValueInfoProto& info, bool is_input) {
  const onnx::TypeProto& type = info.type();
  if (type.value_case() != onnx::TypeProto::kTensorType || !type.tensor_type().has_shape()) return std::nullopt;
  const auto dtype = onnx_dtype(type.tensor_type().elem_type());
  if (!dtype || type.tensor_type().shape().dim_size() > kMaxRank) return std::nullopt;
  TensorType result{*dtype, {}, {}};
  int axis = 0;
  for (const auto& dim : type.tensor_type().shape().dim()) {
    if (is_input) result.shape.push_back(input_dim(info.name(), axis, dim));
    else if (dim.has_dim_value() && dim.dim_value() >= 0 && dim.dim_value() <= kMaxDim)
      result.shape.push_back(dim.dim_value());
    else if (const auto known = known_dim(dim.dim_param())) result.shape.push_back(*known);
    else
      return std::nullopt;  // a name that only the exporter understands would make the operators behind look
                            // unsupported
    ++axis;
  }
  return result;
}

void GraphImporter::define_inputs() {
  for (const auto& input : flat_.proto->input()) {
    TS_USER_CHECK(!input.name().empty(), "bad-input")
        << "graph " << flat_.proto->name() << ": expected inputs with names, got one without";
    // Until IR version 4 weights had to be inputs too; the value in the file is then only a default, which is what
    // everybody wants.
    if (initializers_.count(input.name()) || sparse_initializers_.count(input.name())) continue;
    auto type_of_input = declared_type(input, /*is_input=*/true);
    if (const auto fixed = session_.options.constants.find(input.name()); fixed != session_.options.constants.end()) {
      const TensorType given = static_type(fixed->second.dtype(), fixed->second.shape());
      session_.used_constants.insert(input.name());
      TS_USER_CHECK(!type_of_input || (type_of_input->dtype == given.dtype && type_of_input->rank() == given.rank()),
                    "bad-input")
          << "input " << input.name() << ": expected " << to_string(*type_of_input) << ", got a constant of "
          << to_string(given);
      define(input.name(), {editor_.add_constant(fixed->second, input.name()), true});
      continue;
    }
    if (auto& type = type_of_input) {
      define(input.name(), {editor_.add_input(input.name(), std::move(*type)), true});
      continue;
    }
    const onnx::TypeProto& type = input.type();
    const bool tensor = type.value_case() == onnx::TypeProto::kTensorType;
    std::string why = "it is a sequence, map, optional or sparse tensor", id = "unsupported-type",
                way_out = "make it a tensor";
    if (tensor && !onnx_dtype(type.tensor_type().elem_type())) {
      id = "unsupported-dtype";
      why = onnx_dtype(type.tensor_type().elem_type()).failure().message;
      way_out = way_out_for(id);
    } else if (tensor) {
      id = "dynamic-rank";
      why = "its shape is not declared";
      way_out = "declare the input's shape in the model (open dims may stay open)";
    }
    session_.result.unsupported.add(
        {"(input)", "", 0, 1, input.name(), id, "input '" + input.name().substr(0, 200) + "': " + why, way_out});
    complete_ = false;
    define(input.name(), {});
  }
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

const GraphImporter::Known* GraphImporter::find(const std::string& name) {
  if (const auto found = values_.find(name); found != values_.end()) return &found->second;
  Result<Constant> constant = Failure{};
  if (const auto found = initializers_.find(name); found != initializers_.end())
    constant = read_tensor(*found->second, "initializer '" + name + "'", session_.files, session_.options.limits);
  else if (const auto sparse = sparse_initializers_.find(name); sparse != sparse_initializers_.end())
    constant =
        read_sparse_tensor(*sparse->second, "initializer '" + name + "'", session_.files, session_.options.limits);
  else if (const Constant* outer = outer_constant(name)) constant = *outer;
  else return nullptr;
  Known known;
  if (constant) {
    known = {editor_.add_constant(std::move(constant).value(), name), true};
  } else {
    const Failure& failure = constant.failure();
    if (!is_unsupported(failure.id)) refuse(failure);
    session_.result.unsupported.add({"(tensor)", "", 0, 1, name, failure.id, failure.message, way_out_for(failure.id)});
    complete_ = false;
  }
  return &(values_[name] = known);
}

bool GraphImporter::visible(const std::string& name) {
  for (GraphImporter* scope = this; scope; scope = scope->outer_)
    if (scope->values_.count(name) || scope->initializers_.count(name) || scope->sparse_initializers_.count(name))
      return true;
  return false;
}

const Constant* GraphImporter::outer_constant(const std::string& name) {
  if (!outer_) return nullptr;
  const Known* known = outer_->find(name);
  return known && known->typed ? outer_->editor_.graph().constant(known->value) : nullptr;
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

void GraphImporter::report(const FlatNode& node, const std::string& id, const std::string& why,
                           const std::string& way_out) {
  const std::string domain = normal_domain(node.proto->domain());
  const auto opset = node.opsets->find(domain);
  session_.result.unsupported.add({node.proto->op_type(), domain, opset == node.opsets->end() ? 0 : opset->second, 1,
                                   node_name(*node.proto), id, why, way_out});
  complete_ = false;
}

void GraphImporter::report_subgraph_ops(const FlatGraph& flat) {
  for (const FlatNode& node : flat.nodes) {
    const std::string domain = normal_domain(node.proto->domain());
    if (node.proto->op_type() != "Constant" && !find_op(node.proto->op_type(), domain) &&
        !has_adapter(node.proto->op_type(), domain))
      report(node, "unsupported-op", "the operator is not implemented", way_out_for_op(node.proto->op_type(), domain));
    for (const auto& [attr, subgraph] : node.subgraphs) report_subgraph_ops(*subgraph);
  }
}

void GraphImporter::give_up(const FlatNode& node) {
  complete_ = false;
  for (const std::string& name : node.proto->output()) {
    if (name.empty()) continue;
    const auto declared = declared_.find(name);
    auto type = declared == declared_.end() ? std::nullopt : declared_type(*declared->second, /*is_input=*/false);
    if (type) define(name, {editor_.add_input(name, std::move(*type)), true});
    else define(name, {});
  }
}

void GraphImporter::finish(const FlatNode& node, const std::vector<Value>& outputs) {
  for (int k = 0; k < node.proto->output_size(); ++k) {
    const std::string& name = node.proto->output(k);
    if (name.empty()) continue;
    if (static_cast<size_t>(k) >= outputs.size()) {  // outputs that nothing reads were left out
      define(name, {});
      continue;
    }
    define(name, {outputs[static_cast<size_t>(k)], true});
  }
}

void GraphImporter::import_node(const FlatNode& node) {
  const onnx::NodeProto& proto = *node.proto;
  const std::string domain = normal_domain(proto.domain());
  const std::string what = describe(proto);
  if (proto.op_type() == "Constant" && domain.empty()) return import_constant(node, what);

  const auto opset = node.opsets->find(domain);
  if (opset == node.opsets->end()) {
    TS_USER_CHECK(!domain.empty(), "bad-opset")
        << what << ": expected the model to import an opset of ai.onnx, got none";
    report(node, "unsupported-domain", "the model imports no opset of domain '" + domain + "'",
           way_out_for_op(proto.op_type(), domain));
    return give_up(node);
  }
  TS_USER_CHECK(!domain.empty() || (opset->second >= kOldestOpset && opset->second <= kNewestOpset), "bad-opset")
      << what << ": expected opset " << kOldestOpset << " to " << kNewestOpset << ", got " << opset->second;
  NodeForm form{proto.op_type(), domain, node_name(proto), opset->second, {}, {}, proto.output_size(), {}};
  bool typed = true;
  for (const std::string& name : proto.input()) {
    if (name.empty()) {
      form.inputs.push_back({});
      continue;
    }
    const Known* known = find(name);
    typed &= known && known->typed;
    form.inputs.push_back(known ? known->value : Value{});
  }
  for (const std::string& name : proto.output()) form.output_used.push_back(!name.empty() && reads_.count(name));
  if (!typed) {
    // Nothing can be said about types, but an operator that does not exist belongs into the report.
    if (!find_op(form.op, domain) && !has_adapter(form.op, domain))
      report(node, "unsupported-op", "the operator is not implemented", way_out_for_op(form.op, domain));
    for (const auto& [attr, subgraph] : node.subgraphs) report_subgraph_ops(*subgraph);
    return give_up(node);
  }
  if (import_taken_branch(node, form)) return;
  if (!read_attributes(node, form, what)) return give_up(node);
  add_node(node, std::move(form), what);
}

void GraphImporter::import_constant(const FlatNode& node, const std::string& what) {
  onnx::NodeProto& proto = *node.proto;
  TS_USER_CHECK(proto.output_size() == 1 && proto.attribute_size() == 1 && proto.input_size() == 0, "bad-attribute")
      << what << ": expected one attribute and one output, got " << proto.attribute_size() << " and "
      << proto.output_size();
  onnx::AttributeProto& attribute = *proto.mutable_attribute(0);
  auto value =
      read_attribute(attribute, what + ": attribute " + attribute.name(), session_.files, session_.options.limits);
  if (!value) {
    if (!is_unsupported(value.failure().id)) refuse(value.failure());
    report(node, value.failure().id, value.failure().message, way_out_for(value.failure().id));
    return give_up(node);
  }
  struct Make {
    const std::string& what;
    Constant operator()(const Constant& x) const { return x; }
    Constant operator()(int64_t x) const { return Constant::from_ints(kInt64, {}, std::span(&x, 1)); }
    Constant operator()(double x) const { return Constant::from_floats(kFloat32, {}, std::span(&x, 1)); }
    Constant operator()(const std::vector<int64_t>& x) const {
      return Constant::from_ints(kInt64, {static_cast<int64_t>(x.size())}, x);
    }
    Constant operator()(const std::vector<double>& x) const {
      return Constant::from_floats(kFloat32, {static_cast<int64_t>(x.size())}, x);
    }
    Constant operator()(const std::string&) const {
      throw Refused{"unsupported-dtype", what + ": strings are not supported",
                    "do text processing in front of the model"};
    }
    Constant operator()(const std::vector<std::string>&) const { return (*this)(std::string()); }
    Constant operator()(DType) const { throw UserError("bad-attribute", what + ": expected a value"); }
    Constant operator()(const std::shared_ptr<Graph>&) const {
      throw UserError("bad-attribute", what + ": expected a value");
    }
  };
  try {
    const Value constant = editor_.add_constant(std::visit(Make{what}, *value), node_name(proto));
    editor_.set_output_name(constant, proto.output(0));
    finish(node, {constant});
  } catch (const Refused& refused) {
    report(node, refused.id, refused.why, refused.way_out);
    give_up(node);
  }
}

bool GraphImporter::read_attributes(const FlatNode& node, NodeForm& form, const std::string& what) {
  for (onnx::AttributeProto& attribute : *node.proto->mutable_attribute()) {
    TS_USER_CHECK(!form.attrs.has(attribute.name()), "bad-attribute")
        << what << ": attribute " << attribute.name() << ": expected one value, got two";
    TS_USER_CHECK(attribute.ref_attr_name().empty(), "bad-attribute")
        << what << ": attribute " << attribute.name() << ": expected a value outside of functions";
    if (attribute.has_g()) continue;
    auto value =
        read_attribute(attribute, what + ": attribute " + attribute.name(), session_.files, session_.options.limits);
    if (!value) {
      if (!is_unsupported(value.failure().id)) refuse(value.failure());
      report(node, value.failure().id, value.failure().message, way_out_for(value.failure().id));
      return false;
    }
    form.attrs.set(attribute.name(), std::move(value).value());
  }
  return node.subgraphs.empty() || read_subgraphs(node, form);
}

std::vector<TensorType> GraphImporter::formal_types(const FlatNode& node, const FlatGraph& body, const NodeForm& form) {
  std::vector<TensorType> types;
  const auto type_of = [&](size_t i) {
    return i < form.inputs.size() && form.inputs[i].given() ? editor_.graph().type(form.inputs[i])
                                                            : TensorType{kBool, {}, {}};
  };
  const int count = body.proto->input_size();
  const std::string& op = node.proto->op_type();
  if (op == "Loop") {
    // Iteration number, condition, then what the loop carries.
    for (int k = 0; k < count; ++k)
      types.push_back(k == 0   ? static_type(kInt64, {})
                      : k == 1 ? static_type(kBool, {})
                               : type_of(static_cast<size_t>(k)));
  } else if (op == "Scan") {
    const int64_t scans = form.attrs.get_int("num_scan_inputs", 0);
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
  for (const std::string& name : *captures) form.inputs.push_back(find(name)->value);
  form.attrs.set("captures", static_cast<int64_t>(captures->size()));
  return complete;
}

void GraphImporter::add_node(const FlatNode& node, NodeForm form, const std::string& what) {
  const OpDef* op = find_op(form.op, form.domain);
  try {
    Adapting context(editor_, form);
    if (!op || form.domain.empty()) adapt(context);
    if (!context.outputs.empty()) {
      for (size_t k = 0; k < context.outputs.size() && k < static_cast<size_t>(node.proto->output_size()); ++k)
        if (!node.proto->output(static_cast<int>(k)).empty())
          editor_.set_output_name(context.outputs[k], node.proto->output(static_cast<int>(k)));
      return finish(node, context.outputs);
    }
    op = find_op(form.op, form.domain);
    if (!op) {
      report(node, "unsupported-op", "the operator is not implemented", way_out_for_op(form.op, form.domain));
      for (const auto& [attr, subgraph] : node.subgraphs) report_subgraph_ops(*subgraph);
      return give_up(node);
    }
    if (auto ok = update_attributes(*op, context); !ok) {
      if (!is_unsupported(ok.failure().id)) refuse({ok.failure().id, what + ": " + ok.failure().message});
      report(node, ok.failure().id, ok.failure().message,
             "use an opset in which the operator has this form, or leave the attribute out");
      return give_up(node);
    }
    // Optional outputs at the end that nothing reads are not asked for.
    if (op->max_outputs >= 0)
      while (form.num_outputs > op->min_outputs && (static_cast<size_t>(form.num_outputs) > form.output_used.size() ||
                                                    !form.output_used[static_cast<size_t>(form.num_outputs) - 1]))
        --form.num_outputs;
    auto added = editor_.try_add(*op, form.inputs, form.attrs, form.name, form.num_outputs);
    if (!added) {
      if (!is_unsupported(added.failure().id)) refuse(added.failure());
      report(node, added.failure().id, added.failure().message, way_out_for(added.failure().id));
      return give_up(node);
    }
    std::vector<Value> outputs;
    for (int k = 0; k < form.num_outputs; ++k) {
      outputs.push_back({*added, k});
      if (k < node.proto->output_size() && !node.proto->output(k).empty())
        editor_.set_output_name(outputs.back(), node.proto->output(k));
    }
    finish(node, outputs);
  } catch (const Refused& refused) {
    report(node, refused.id, refused.why, refused.way_out);
    give_up(node);
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
