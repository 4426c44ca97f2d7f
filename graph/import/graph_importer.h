/// One graph of the model (the main one or a subgraph) into our form.
#pragma once

#include <deque>
#include <optional>
#include <set>
#include <unordered_map>

#include "graph/import/flatten.h"
#include "graph/import/node_form.h"
#include "graph/import/tensor_proto.h"

namespace tensmith::graph {

/// What all graphs of one model share.
struct ImportSession {
  const ImportOptions& options;
  ExternalData files;
  LargeData large;
  ImportResult& result;
  std::set<std::string> used_dims;                                            ///< keys of options.dims that were met
  std::set<std::string> used_constants;                                       ///< the same of options.constants
  std::unordered_map<const FlatGraph*, std::vector<std::string>> free_names;  ///< cache
  int64_t unrolled_nodes;  ///< what is left of ImportLimits::unrolled_nodes; attempts that fail cost too
};

/// Names that a subgraph reads but does not define, in order of first appearance. Cost: linear in the nodes, by the
/// cache.
const std::vector<std::string>& free_names(const FlatGraph& flat, ImportSession& session);

class GraphImporter {
 public:
  /// `outer` is the importer of the surrounding graph, or null.
  GraphImporter(ImportSession& session, const FlatGraph& flat, Graph& target, GraphImporter* outer)
      : session_(session), flat_(flat), outer_(outer), editor_(target) {}

  /// Imports the main graph; its inputs have the types that the model declares.
  void run_main();
  /// Imports a subgraph: formal inputs of the given types, then the captured values. Returns false when something in it
  /// is not supported (which is then in the report).
  bool run_subgraph(const std::vector<TensorType>& formals, const std::vector<std::string>& captures);

 private:
  /// A value by name; not typed when an operator in front of it is not supported.
  struct Known {
    Value value;
    bool typed = false;
  };

  void define_initializers();
  void define_inputs();
  void order_nodes();
  void import_nodes();
  bool set_graph_outputs();
  void check_output_type(const onnx::ValueInfoProto& declared, Value value);

  void define(const std::string& name, Known known);
  /// The value of a name of this graph; makes the constant of an initializer on first use. Null when there is none.
  const Known* find(const std::string& name);
  /// Like `find`, but also sees the surrounding graphs (for constants and existence).
  bool visible(const std::string& name);
  const Constant* outer_constant(const std::string& name);

  void import_node(const FlatNode& node);
  void import_constant(const FlatNode& node, const std::string& what);
  /// Reads attributes and subgraphs. False when the node cannot be added (the report says why).
  bool read_attributes(const FlatNode& node, NodeForm& form, const std::string& what);
  bool read_subgraphs(const FlatNode& node, NodeForm& form);
  /// Names that the subgraphs read from here and that are no constants. Nothing when one of them has no type.
  std::optional<std::vector<std::string>> captures_of(const FlatNode& node,
                                                      const std::vector<const FlatGraph*>& subgraphs);
  /// `If` whose condition is known: only the branch that is taken is imported, in place. True when the node is done.
  bool import_taken_branch(const FlatNode& node, const NodeForm& form);
  /// Loop and Scan that turn a known number of times: the body once for each turn, in place. True when the node is
  /// done; otherwise the form has its subgraph as `read_subgraphs` leaves it.
  bool import_unrolled(const FlatNode& node, NodeForm& form);
  std::vector<TensorType> formal_types(const FlatNode& node, const FlatGraph& body, const NodeForm& form);
  void add_node(const FlatNode& node, NodeForm form, const std::string& what);
  void finish(const FlatNode& node, const std::vector<Value>& outputs);
  /// Outputs of a node that could not be added: typed by what the model declares, so that the nodes behind it are
  /// looked at too.
  void give_up(const FlatNode& node);
  void report(const FlatNode& node, const std::string& id, const std::string& why, const std::string& way_out);
  void report_subgraph_ops(const FlatGraph& flat);

  std::optional<TensorType> declared_type(const onnx::ValueInfoProto& info, bool is_input);
  std::optional<Expr> known_dim(const std::string& name) const;
  Expr input_dim(const std::string& input, int axis, const onnx::TensorShapeProto::Dimension& dim);

  ImportSession& session_;
  const FlatGraph& flat_;
  GraphImporter* outer_;
  GraphEditor editor_;
  std::unordered_map<std::string, Known> values_;
  std::unordered_map<std::string, onnx::TensorProto*> initializers_;
  std::unordered_map<std::string, onnx::SparseTensorProto*> sparse_initializers_;
  std::unordered_map<std::string, const onnx::ValueInfoProto*> declared_;
  std::unordered_map<std::string, int> reads_;  // how often each name is read
  std::vector<const FlatNode*> order_;
  bool complete_ = true;
};

}  // namespace tensmith::graph
