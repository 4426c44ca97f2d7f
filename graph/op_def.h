/// The definition of an operator: everything that is known of it, in one place.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "graph/graph.h"
#include "tensor/workload.h"

namespace tensmith::graph {

/// How an operator may be fused.
enum class FusionKind : uint8_t {
  kElementwise,  ///< each output element from the elements at the same (broadcast) index of the inputs
  kInjective,  ///< each output element from one computed index of the data input (transpose, slice, concat, gather ...)
  kReduction,  ///< reduce along axes, possibly followed by elementwise use of the result (softmax, layer norm)
  kContraction,  ///< sum of products (matmul, conv): an anchor that takes epilogues
  kOpaque,       ///< a kernel of its own
};

/// What an operator wants of the layouts of its tensors.
enum class LayoutRole : uint8_t {
  kRowMajor,  ///< the order of the model: it mixes axes (reshape, transpose, products of matrices)
  kChannels,  ///< axis 1 of its data and result holds channels and the axes behind it space: it is fast when the
              ///< channels of one place are contiguous, all of them or in blocks
  kFollows,   ///< serves whatever layout its operands of the result's rank have
};

/// The set of element types that an input accepts.
enum class TypeSet : uint8_t {
  kAny,
  kFloat,
  kNumeric,
  kInteger,
  kSigned,
  kBool,
  kIndex /* i32, i64 */,
  kInt64,
  kFloatOrInt32
};
bool accepts(TypeSet set, DType type);

struct InputSpec {
  const char* name;
  TypeSet types = TypeSet::kAny;
  bool optional = false;
  bool variadic = false;               ///< only the last one: one or more
  const char* same_type_as = nullptr;  ///< must have the element type of that input
};

enum class AttrKind : uint8_t { kInt, kFloat, kString, kInts, kFloats, kStrings, kTensor, kType, kGraph };

/// An attribute with its history. Import turns older forms into the newest: an attribute that later became an input is
/// moved there as a constant.
struct AttrSpec {
  const char* name;
  AttrKind kind;
  bool required = false;
  AttrValue default_value =
      int64_t{0};               ///< used when not required and not given; meaningless for kTensor, kGraph, `no_default`
  bool no_default = false;      ///< absent means something of its own (e.g. Reshape's axes: all)
  int since = 1, until = 1000;  ///< opsets (inclusive) that know it
  int becomes_input = -1;       ///< after `until`: the position of the input that replaced it
  std::vector<std::string> allowed = {};  ///< kString: the values accepted
};

/// What a type rule sees and gives.
struct InferContext {
  const Node& node;
  std::vector<const TensorType*> inputs;   ///< null: not given
  std::vector<const Constant*> constants;  ///< content of an input when known, else null
  int num_outputs = 1;                     ///< how many outputs the model asks for

  const TensorType& input(int i) const { return *inputs.at(i); }
  bool has(int i) const { return i < static_cast<int>(inputs.size()) && inputs[i] != nullptr; }
  /// Elements of an integer or bool input as kInt64 expressions: from its constant, or from TensorType::value. Null
  /// when unknown.
  std::optional<std::vector<Expr>> int_values(int i) const;
  /// A dim that only the data decides (NonZero, Unique ...): the one the node has already, else a new variable named
  /// after the node.
  Expr data_dim(int output, int axis) const;
};

/// What a compute rule sees.
struct ComputeContext {
  const Node& node;
  std::vector<Tensor> inputs;  ///< null tensor: not given
  std::vector<const TensorType*> input_types;
  std::vector<const Constant*> constants;

  const Tensor& input(int i) const { return inputs.at(i); }
  bool has(int i) const { return i < static_cast<int>(inputs.size()) && static_cast<bool>(inputs[i]); }
  const TensorType& output_type(int i = 0) const { return node.types.at(i); }
};

/// A tensor of the reference interpreter: floats in double (rounded to their type by the interpreter after each
/// operator unless it runs in float64), integers and bools exact.
struct RefTensor {
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<double> f;
  std::vector<int64_t> i;

  bool is_float() const { return dtype.is_float(); }
  int64_t num_elements() const;
  double get(int64_t index) const { return is_float() ? f[index] : static_cast<double>(i[index]); }
  void set(int64_t index, double value);
};
RefTensor make_ref_tensor(DType dtype, std::vector<int64_t> shape);
/// Conversions between stored data and reference tensors (rounding floats, wrapping integers).
RefTensor to_ref_tensor(const Constant& value);
Constant to_constant(const RefTensor& value);
/// Rounds floats to their type in place, wraps integers to their width.
void round_to_dtype(RefTensor& tensor);

/// What a reference rule sees: plain loops in double, written independently of `compute`.
struct ReferenceContext {
  const Node& node;
  std::vector<const RefTensor*> inputs;  ///< null: not given
  std::vector<RefTensor>
      outputs;  ///< made with the right shape and zeros when the shape is static; else the rule makes them

  const RefTensor& input(int i) const { return *inputs.at(i); }
  bool has(int i) const { return i < static_cast<int>(inputs.size()) && inputs[i] != nullptr; }
  RefTensor& output(int i = 0) { return outputs.at(i); }
};

/// What a kernel of a node has to do, where figures by count and size alone would say more.
struct OpWork {
  double flops = 0;                 ///< floating-point operations that it executes
  std::vector<double> input_bytes;  ///< of each input those that it reads, at least
};

/// A small example from which tests are generated: input types (with values for inputs that steer shapes) and
/// attributes.
struct OpSample {
  std::string name;
  struct Input {
    DType dtype;
    std::vector<int64_t> shape;
    std::vector<double> values = {};  ///< empty: random (see `low`, `high`)
    double low = -2, high = 2;
    bool constant = false;  ///< given as a Constant node
    bool absent = false;
  };
  std::vector<Input> inputs;
  AttrMap attrs = {};
  int num_outputs = 1;
  double rtol = 1e-5, atol = 1e-6;
  std::string error_id = {};  ///< not empty: the type rule must refuse with this id
};

/// Everything that is known of an operator.
///
/// Operators with subgraphs (If, Loop, Scan) have closed subgraphs: the outer values that they read stand behind the
/// operator's own inputs (attribute `captures` says how many), and every subgraph of the node has as inputs its formal
/// ones, then one for each of these, in the same order. Outer constants are constants of the subgraph too.
struct OpDef {
  std::string name;
  std::string domain = "";  ///< "" is ai.onnx; internal operators use "tensmith"
  int since = 1;            ///< first opset with this meaning (older forms are brought up by the importer)
  std::string doc;
  std::vector<InputSpec> inputs;
  std::vector<AttrSpec> attrs = {};
  int min_outputs = 1, max_outputs = 1;  ///< max -1: any
  FusionKind fusion = FusionKind::kOpaque;
  bool is_source = false;  ///< inputs and constants: the outputs are there before anything runs
  bool renames = false;    ///< the output holds the elements of the first input in the same row-major order
  /// Not given: elementwise operators follow, others want row-major data.
  std::optional<LayoutRole> layout = std::nullopt;

  /// Types of the outputs. Errors: a Failure with an id such as `shape-mismatch`, `unsupported-dtype`, `dynamic-shape`.
  std::function<Result<std::vector<TensorType>>(const InferContext&)> infer;
  /// The outputs as tensor expressions. Null when `decompose` is given.
  std::function<std::vector<Tensor>(const ComputeContext&)> compute = nullptr;
  /// The input whose numbers are indices (-extent to extent - 1); none outside may reach the compute rule, which only
  /// clamps them. -1: none.
  int index_input = -1;
  /// The extents that they index: one for all numbers, or one for each position along the last dim. Given with
  /// `index_input`.
  std::function<std::vector<Expr>(const InferContext&)> index_extents = nullptr;
  /// Why the compute rule cannot serve this node (asked before compiling), or ok. Null: serves all that `infer`
  /// accepts.
  std::function<Result<void>(const InferContext&)> supports = nullptr;
  /// Replaces the node by simpler ones; returns the values that take the place of its outputs. Run by the decompose
  /// pass.
  std::function<std::vector<Value>(GraphEditor&, const Node&)> decompose = nullptr;
  /// Plain loops in double.
  std::function<Result<void>(ReferenceContext&)> reference = nullptr;
  /// The one output for constant inputs (null: not given), bit for bit what `reference` gives but without the way
  /// through doubles for each element; nothing where it does not serve. For weights of many megabytes.
  std::function<std::optional<Constant>(const Node&, const std::vector<const Constant*>&)> fold = nullptr;
  /// Builds the gradient; null: not differentiable or not written yet (autodiff has an issue of its own).
  std::function<std::vector<Value>(GraphEditor&, const Node&, const std::vector<Value>& output_gradients)> gradient =
      nullptr;
  /// Units: floating-point operations for given types; null: one per output element.
  std::function<double(const InferContext&)> flops = nullptr;
  /// Lessens a work of `flops` operations and all bytes of the inputs to what the compute rule needs; null: nothing to
  /// lessen.
  std::function<void(const InferContext&, OpWork&)> work = nullptr;
  std::vector<OpSample> samples = {};
};

/// Checks arity, attributes and element types by the definition, then runs the type rule; dims come back simplified.
/// Errors: a Failure whose text names operator, node, input or attribute.
Result<std::vector<TensorType>> infer_types(const InferContext& context);
/// How many inputs must be given, at least (optional inputs at the end not counted).
int min_inputs(const OpDef& op);
/// The role that the definition gives or that follows from the kind of fusion.
LayoutRole layout_role(const OpDef& op);

/// All operators: one explicit list (graph/ops/op_list.cpp), in alphabetical order.
std::span<const OpDef* const> all_ops();
/// Null when unknown.
const OpDef* find_op(std::string_view name, std::string_view domain = "");

}  // namespace tensmith::graph
