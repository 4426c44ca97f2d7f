/// A node of the model on its way into the graph, and the adapters that bring older and foreign forms up to ours.
#pragma once

#include <string>
#include <vector>

#include "graph/op_def.h"

namespace tensmith::graph {

/// What the model says of a node, with values instead of names.
struct NodeForm {
  std::string op, domain, name;
  int64_t opset = 0;  ///< of the domain
  std::vector<Value> inputs;
  AttrMap attrs;  ///< element types are still ints
  int num_outputs = 1;
  std::vector<bool> output_used;  ///< one per output: whether anything reads it
};

/// Thrown by an adapter for what cannot be brought into our form; becomes a row of the report.
struct Refused {
  std::string id, why, way_out;
};

/// What an adapter works with. It changes the form, or builds the nodes itself and states the outputs.
class Adapting {
 public:
  Adapting(GraphEditor& editor, NodeForm& form) : editor(editor), form(form) {}

  GraphEditor& editor;
  NodeForm& form;
  std::vector<Value> outputs;  ///< not empty: the node is done

  bool has(int i) const { return i < static_cast<int>(form.inputs.size()) && form.inputs[i].given(); }
  Value input(int i) const { return has(i) ? form.inputs[i] : Value{}; }
  /// Errors: UserError bad-arity when the value is not given.
  const TensorType& type(Value v) const;
  const Constant* constant(int i) const { return has(i) ? editor.graph().constant(form.inputs[i]) : nullptr; }
  void set_input(int i, Value value);
  bool input_is_empty_constant(int i) const;

  Value ints(const std::vector<int64_t>& values);  ///< a constant of rank 1, i64
  Value floats(const std::vector<double>& values, DType dtype = kFloat32);
  Value scalar(double value, DType dtype);
  /// The first output of a new node of the default domain; its name derives from the form's.
  Value node(const std::string& op, std::vector<Value> inputs, AttrMap attrs = {});
  /// The value in the shape of another value.
  Value reshape_like(Value v, Value shape_of);

 private:
  int made_ = 0;
};

/// Brings a node of the given opset up to the newest form: one row per operator and range of opsets.
struct Adapter {
  const char* op;
  const char* domain;
  int64_t first_opset, last_opset;
  void (*apply)(Adapting&);
};

/// For operators of the default domain: what version ranges of attributes (AttrSpec) cannot say.
std::vector<Adapter> onnx_adapters();
/// For the operators of com.microsoft that we know.
std::vector<Adapter> microsoft_adapters();
/// For the operators of ai.onnx.ml that need no others than those of the default domain.
std::vector<Adapter> ml_adapters();
/// For the optimizers of ai.onnx.preview.training.
std::vector<Adapter> training_adapters();

/// Whether some version of the operator has an adapter.
bool has_adapter(const std::string& op, const std::string& domain);

/// Runs all adapters of the form's operator. Errors: Refused.
void adapt(Adapting& context);

/// Turns attributes into the newest form by the definition's version ranges: element types become DTypes, older
/// defaults are written out, attributes that became inputs are moved there. Errors: a Failure `unsupported-attribute`
/// or `bad-attribute`.
Result<void> update_attributes(const OpDef& op, Adapting& context);

}  // namespace tensmith::graph
