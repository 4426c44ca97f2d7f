/// The graph IR: operators on tensors. One Node class; a value is (node, output index); edits go through GraphEditor.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "graph/constant.h"
#include "runtime/base/result.h"
#include "tensor/expr.h"

namespace tensmith::graph {

struct OpDef;
class Graph;

/// Element type and shape of a value. A dim is an index expression: a constant, a symbolic variable, or arithmetic over
/// them.
struct TensorType {
  DType dtype;
  std::vector<Expr> shape;
  /// For small tensors (at most 64 elements, row-major) whose elements are known as expressions over
  /// symbolic dims: the elements, each a kInt64 expression (a bool is 0 or 1). This is how Shape -> Gather -> Concat ->
  /// Reshape chains are understood. Floats are followed too, since exporters scale sizes in floating point: whole
  /// numbers as kInt64 expressions, others as FloatImm. Empty: unknown (or no elements).
  std::vector<Expr> value;

  int rank() const { return static_cast<int>(shape.size()); }
  bool is_static() const;
  /// The shape as numbers. Errors: InternalError when a dim is symbolic.
  std::vector<int64_t> static_shape() const;
};
/// Text form `f32[1, 3, s, 224]`.
std::string to_string(const TensorType& type);
/// Text form of a dim: `s`, `s + 1`, `floor_div(s, 2)`; names as they are in the graph.
std::string dim_to_string(const Expr& dim);
/// Whether two dims are provably the same (by identity, by structure, or after simplification).
bool same_dim(const Expr& a, const Expr& b);
/// Same dtype and provably the same dims; `value` does not count.
bool same_type(const TensorType& a, const TensorType& b);
/// A type with constant dims.
TensorType static_type(DType dtype, const std::vector<int64_t>& shape);

/// An attribute: int, float, string, lists of them, tensor, element type, or a subgraph (If, Loop, Scan).
using AttrValue = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string>, Constant, DType, std::shared_ptr<Graph>>;

/// Attributes by name with typed access.
class AttrMap {
 public:
  bool has(const std::string& name) const { return values_.count(name) != 0; }
  void set(const std::string& name, AttrValue value) { values_[name] = std::move(value); }
  void erase(const std::string& name) { values_.erase(name); }
  /// The value, or `fallback` when absent. Errors: UserError "bad-attribute" when it has another type.
  int64_t get_int(const std::string& name, int64_t fallback) const;
  double get_float(const std::string& name, double fallback) const;
  std::string get_string(const std::string& name, const std::string& fallback) const;
  std::vector<int64_t> get_ints(const std::string& name, const std::vector<int64_t>& fallback = {}) const;
  std::vector<double> get_floats(const std::string& name, const std::vector<double>& fallback = {}) const;
  DType get_dtype(const std::string& name, DType fallback) const;
  /// Null when absent.
  const Constant* get_tensor(const std::string& name) const;
  std::shared_ptr<Graph> get_graph(const std::string& name) const;

  /// A list of strings; empty when absent.
  std::vector<std::string> get_strings(const std::string& name) const;
  const std::map<std::string, AttrValue>& all() const { return values_; }

 private:
  std::map<std::string, AttrValue> values_;
};

using NodeId = int32_t;

/// One output of a node. `node < 0` stands for an optional input that is not given.
struct Value {
  NodeId node = -1;
  int output = 0;
  bool given() const { return node >= 0; }
  friend bool operator==(const Value&, const Value&) = default;
  friend auto operator<=>(const Value&, const Value&) = default;
};

/// An operator applied to values. Graph inputs are nodes of the operator `Input`, constants of the operator `Constant`
/// (attribute `value`); both have no inputs.
struct Node {
  NodeId id = -1;
  const OpDef* op = nullptr;
  std::string name;  ///< as in the model, or made unique; for messages
  std::vector<Value> inputs;
  AttrMap attrs;
  std::vector<TensorType> types;          ///< one per output
  std::vector<std::string> output_names;  ///< as in the model, or derived; unique in the graph
};

/// A DAG of nodes. Node ids are stable; erased ids are not reused.
class Graph {
 public:
  std::string name;
  std::vector<NodeId> inputs;  ///< Input nodes in the caller's order
  std::vector<Value> outputs;  ///< in the caller's order
  std::vector<std::string> output_names;
  std::vector<Var> dims;  ///< symbolic dims of the inputs, in order of appearance

  const Node& node(NodeId id) const { return *nodes_.at(id); }
  bool alive(NodeId id) const { return id >= 0 && id < static_cast<NodeId>(nodes_.size()) && nodes_[id] != nullptr; }
  const TensorType& type(Value v) const { return node(v.node).types.at(v.output); }
  const std::string& value_name(Value v) const { return node(v.node).output_names.at(v.output); }
  /// The content when the value comes from a Constant node, else null.
  const Constant* constant(Value v) const;
  /// Alive nodes, producers first (deterministic).
  std::vector<NodeId> topological_order() const;
  /// (consumer node, input index) pairs, and `{-1, k}` for graph output k.
  struct Use {
    NodeId node;
    int input;
  };
  const std::vector<Use>& uses(Value v) const;
  int64_t num_nodes() const { return alive_; }
  /// One above the highest id that was ever given.
  NodeId end_id() const { return static_cast<NodeId>(nodes_.size()); }
  /// A deep copy (constants stay shared).
  Graph clone() const;

  Graph() = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;

 private:
  friend class GraphEditor;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::vector<std::vector<Use>>> uses_;   // by node, output
  std::unordered_set<std::string> value_names_;       // of all alive outputs
  std::unordered_map<std::string, int> next_suffix_;  // where the search for a free name goes on
  int64_t alive_ = 0;
};

/// The only way to change a graph; keeps uses and types right.
class GraphEditor {
 public:
  explicit GraphEditor(Graph& graph) : graph_(graph) {}
  const Graph& graph() const { return graph_; }

  /// Adds a node and infers its types. `num_outputs` is how many outputs are asked for (InferContext::num_outputs); -1:
  /// the fewest that the operator has. Errors: UserError (UnsupportedError for ids that start with "unsupported-" or
  /// "dynamic-") naming the node when the operator's rule refuses; the graph is then as before.
  NodeId add(const OpDef& op, std::vector<Value> inputs, AttrMap attrs = {}, std::string name = {},
             int num_outputs = -1);
  /// The same by operator name (domain "" and the internal ones); for passes and tests.
  NodeId add(const std::string& op, std::vector<Value> inputs, AttrMap attrs = {}, std::string name = {},
             int num_outputs = -1);
  /// The same without throwing. Errors: a Failure with the rule's id and the full text.
  Result<NodeId> try_add(const OpDef& op, std::vector<Value> inputs, AttrMap attrs = {}, std::string name = {},
                         int num_outputs = -1);
  Value add_input(const std::string& name, TensorType type);
  Value add_constant(Constant value, const std::string& name = {});
  /// All uses of `from`, graph outputs included, become uses of `to`. Errors: InternalError when the types differ.
  void replace_uses(Value from, Value to);
  /// The same for a value whose type is better known (a size that only the data decided, a branch that is taken): the
  /// types of what follows are inferred again. Errors: those of the type rules.
  void replace_uses_retyped(Value from, Value to);
  void set_input(NodeId node, int input, Value value);
  void set_attr(NodeId node, const std::string& attr, AttrValue value);
  void erase_attr(NodeId node, const std::string& attr);
  void set_outputs(std::vector<Value> outputs, std::vector<std::string> names);
  /// Names an output of a node as in the model. A node that has the name already gets a derived one instead.
  void set_output_name(Value v, const std::string& name);
  /// A symbolic dim of that name: the one in Graph::dims, else a new one that is added there.
  Var dim(const std::string& name);
  /// Replaces symbolic dims by numbers and infers all types again.
  void bind_dims(const std::map<std::string, int64_t>& sizes);
  /// Infers the types of the node and of all that follow from it again.
  void refresh_types(NodeId node);
  /// Removes a node without uses.
  void erase(NodeId node);
  /// Removes all nodes that no graph output needs (Input nodes stay). Returns how many.
  int erase_dead();

 private:
  NodeId insert(std::unique_ptr<Node> node);
  std::string free_name(const std::string& wanted);
  void remove_use(Value value, Graph::Use use);
  void substitute_dims(const std::unordered_map<const VarNode*, Expr>& map);

  Graph& graph_;
};

/// Types, uses, acyclicity, names. Errors: a Failure "graph-..." naming node and rule.
Result<void> verify(const Graph& graph);

/// A hash of type, shape and content (stable from run to run).
std::string digest(const Constant& value);
/// The large constants of a graph by digest, beside a text that only names them.
using ConstantTable = std::map<std::string, Constant>;
/// All constants of the graph and its subgraphs that `to_string` does not write out.
ConstantTable large_constants(const Graph& graph);

/// How a graph is printed.
struct PrintOptions {
  int64_t max_inline = 64;   ///< constants with more elements are printed by digest
  bool all_content = false;  ///< write the content of large constants too (base64), so that the text stands alone
};
/// Stable text that `parse_graph` reads back (large constants as type and digest, see ConstantTable).
std::string to_string(const Graph& graph);
std::string to_string(const Graph& graph, const PrintOptions& options);
/// Errors: a Failure "parse-error" with line and column (also for a digest that the table lacks, and for types that the
/// operators' rules do not give).
Result<Graph> parse_graph(std::string_view text);
Result<Graph> parse_graph(std::string_view text, const ConstantTable& constants);

}  // namespace tensmith::graph
