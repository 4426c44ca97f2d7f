/// Small ONNX models for tests, written with protobuf's classes.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/import/onnx_import.h"
#include "graph/interpret.h"
#include "onnx.pb.h"

namespace tensmith::graph {

/// Builds a model node by node. Calls return *this or the new message, so that tests can bend it afterwards.
class OnnxBuilder {
 public:
  explicit OnnxBuilder(int64_t opset = 13) {
    model_.set_ir_version(8);
    import("", opset);
    model_.mutable_graph()->set_name("test");
  }

  onnx::ModelProto& model() { return model_; }
  onnx::GraphProto& graph() { return *model_.mutable_graph(); }

  void import(const std::string& domain, int64_t version) {
    auto* opset = model_.add_opset_import();
    opset->set_domain(domain);
    opset->set_version(version);
  }

  /// A dim below 0 becomes open and unnamed.
  static void set_type(onnx::ValueInfoProto& info, const std::string& name, int dtype,
                       const std::vector<int64_t>& shape) {
    info.set_name(name);
    auto* tensor = info.mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(dtype);
    tensor->mutable_shape();
    for (int64_t dim : shape) {
      auto* d = tensor->mutable_shape()->add_dim();
      if (dim >= 0) d->set_dim_value(dim);
    }
  }
  onnx::ValueInfoProto& input(const std::string& name, const std::vector<int64_t>& shape,
                              int dtype = onnx::TensorProto::FLOAT) {
    auto* info = graph().add_input();
    set_type(*info, name, dtype, shape);
    return *info;
  }
  onnx::ValueInfoProto& output(const std::string& name, const std::vector<int64_t>& shape = {},
                               int dtype = onnx::TensorProto::UNDEFINED) {
    auto* info = graph().add_output();
    if (dtype == onnx::TensorProto::UNDEFINED) info->set_name(name);
    else set_type(*info, name, dtype, shape);
    return *info;
  }

  static onnx::NodeProto& add_node(onnx::GraphProto& graph, const std::string& op,
                                   const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                                   const std::string& domain = {}) {
    auto* node = graph.add_node();
    fill(*node, op, inputs, outputs, domain);
    return *node;
  }
  static void fill(onnx::NodeProto& node, const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs, const std::string& domain = {}) {
    node.set_op_type(op);
    node.set_domain(domain);
    node.set_name(op + "_" + (outputs.empty() ? "" : outputs[0]));
    for (const auto& name : inputs) node.add_input(name);
    for (const auto& name : outputs) node.add_output(name);
  }
  onnx::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const std::string& domain = {}) {
    return add_node(graph(), op, inputs, outputs, domain);
  }

  onnx::TensorProto& floats(const std::string& name, const std::vector<int64_t>& shape,
                            const std::vector<float>& values) {
    auto* tensor = graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    for (int64_t dim : shape) tensor->add_dims(dim);
    for (float value : values) tensor->add_float_data(value);
    return *tensor;
  }
  onnx::TensorProto& ints(const std::string& name, const std::vector<int64_t>& shape,
                          const std::vector<int64_t>& values) {
    auto* tensor = graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::INT64);
    for (int64_t dim : shape) tensor->add_dims(dim);
    for (int64_t value : values) tensor->add_int64_data(value);
    return *tensor;
  }

  std::string bytes() const { return model_.SerializeAsString(); }
  ImportResult import_model(const ImportOptions& options = {}, const std::string& folder = {}) const {
    const std::string data = bytes();
    return import_onnx_bytes(data.data(), data.size(), options, folder);
  }

 private:
  onnx::ModelProto model_;
};

inline onnx::AttributeProto& attribute(onnx::NodeProto& node, const std::string& name) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  return *attribute;
}
inline onnx::NodeProto& set(onnx::NodeProto& node, const std::string& name, int64_t value) {
  auto& a = attribute(node, name);
  a.set_type(onnx::AttributeProto::INT);
  a.set_i(value);
  return node;
}
inline onnx::NodeProto& set(onnx::NodeProto& node, const std::string& name, float value) {
  auto& a = attribute(node, name);
  a.set_type(onnx::AttributeProto::FLOAT);
  a.set_f(value);
  return node;
}
inline onnx::NodeProto& set(onnx::NodeProto& node, const std::string& name, const std::string& value) {
  auto& a = attribute(node, name);
  a.set_type(onnx::AttributeProto::STRING);
  a.set_s(value);
  return node;
}
inline onnx::NodeProto& set(onnx::NodeProto& node, const std::string& name, const std::vector<int64_t>& values) {
  auto& a = attribute(node, name);
  a.set_type(onnx::AttributeProto::INTS);
  for (int64_t value : values) a.add_ints(value);
  return node;
}
inline onnx::NodeProto& set(onnx::NodeProto& node, const std::string& name, const std::vector<float>& values) {
  auto& a = attribute(node, name);
  a.set_type(onnx::AttributeProto::FLOATS);
  for (float value : values) a.add_floats(value);
  return node;
}

/// Imports, verifies, runs; gives all outputs. Fails the test, and gives none, where one of these fails.
inline std::vector<RefTensor> run(const OnnxBuilder& builder, std::vector<RefTensor> inputs) {
  ImportResult result = builder.import_model();
  EXPECT_TRUE(result.ok()) << to_string(result.unsupported);
  if (!result.ok()) return {};
  const auto ok = verify(result.graph);
  EXPECT_TRUE(ok.ok()) << (ok ? "" : ok.failure().message);
  const auto outputs = interpret(result.graph, std::move(inputs));
  EXPECT_TRUE(outputs.ok()) << (outputs ? "" : outputs.failure().message);
  return outputs ? *outputs : std::vector<RefTensor>{};
}

}  // namespace tensmith::graph
