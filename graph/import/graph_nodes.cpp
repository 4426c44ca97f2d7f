// One node of the model: attributes, the way to its newest form, and what is reported when it cannot be added.
#include "graph/import/attribute_proto.h"
#include "graph/import/graph_importer.h"
#include "graph/import/node_text.h"

namespace tensmith::graph {

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
  if (import_unrolled(node, form)) return;
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
    if (!is_unsupported(value.failure().id)) throw_failure(value.failure());
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
      if (!is_unsupported(value.failure().id)) throw_failure(value.failure());
      report(node, value.failure().id, value.failure().message, way_out_for(value.failure().id));
      return false;
    }
    form.attrs.set(attribute.name(), std::move(value).value());
  }
  return node.subgraphs.empty() || read_subgraphs(node, form);
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
      if (!is_unsupported(ok.failure().id)) throw_failure({ok.failure().id, what + ": " + ok.failure().message});
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
      if (!is_unsupported(added.failure().id)) throw_failure(added.failure());
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

}  // namespace tensmith::graph
