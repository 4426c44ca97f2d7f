/// Rewriting by rules: each rule looks at one node and what is around it.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/choice.h"
#include "graph/op_def.h"
#include "runtime/base/target.h"

namespace tensmith::graph {

/// What passes may know beside the graph.
struct PassOptions {
  int64_t constant_limit_bytes = int64_t{64}
                                 << 20;  ///< largest constant that folding may make (unless it replaces larger ones)
  std::optional<Target> target = {};     ///< what the code is for; without it choices that depend on it are not made
  bool winograd = true;                  ///< convolutions may be computed by transformed tiles
  Chooser choose = nullptr;              ///< where a pass could go another way than its estimate says; null: it says
  /// Called with a line for each choice that a pass makes by cost, and its reasons; null: nobody asks.
  std::function<void(const std::string&)> explain = nullptr;
};

/// Reads and changes a graph on behalf of rules.
class Rewriter {
 public:
  explicit Rewriter(GraphEditor& edit) : edit(edit), graph(edit.graph()) {}

  GraphEditor& edit;
  const Graph& graph;

  const TensorType& type(Value v) const { return graph.type(v); }
  const Constant* constant(Value v) const { return graph.constant(v); }
  /// The node behind a value when it is this operator of the default domain, else null.
  const Node* producer(Value v, std::string_view op) const;
  /// The number that all elements of a constant are, if they are.
  std::optional<double> number(Value v) const;
  bool is_number(Value v, double number) const;
  /// The same for a number such as sqrt(2) that exporters round, see is_written_as.
  bool is_about(Value v, double number) const;
  /// The elements of a constant integer tensor.
  std::optional<std::vector<int64_t>> ints(Value v) const;
  bool single_use(Value v) const { return graph.uses(v).size() == 1; }
  /// The only node that reads the value, when it is this operator of the default domain, else null.
  const Node* only_user(Value v, std::string_view op) const;

  /// Adds a node named after the one that it will stand for; its first output. Null value when the type rule refuses.
  Value add(const Node& like, const std::string& op, std::vector<Value> inputs, AttrMap attrs = {});
  Value add_ints(const Node& like, const std::vector<int64_t>& values);
  /// Of the data [batch, channels, places ...] the places that such strides meet, from the first one on. The sizes of
  /// the places are known.
  Value add_places(const Node& like, Value data, const std::vector<int64_t>& strides);
  Value add_number(const Node& like, double number, DType dtype, std::vector<int64_t> shape = {});
  /// The value in another shape (constant dims), or the value itself when it has that shape. Null value when refused.
  Value reshape(const Node& like, Value v, const std::vector<Expr>& shape);

  /// Puts `by` in the place of the node's first output and removes what nobody needs any more; the name goes over to
  /// `by` when it is new. False (and nothing happens) when `by` is null or the types are not provably the same.
  bool replace(const Node& node, Value by);
  /// Removes the node if nothing uses it, then its inputs likewise.
  void erase_unused(NodeId id);
};

/// One rewrite, documented by its name and doc (`before --> after`).
struct Rule {
  const char* name;
  const char* op;  ///< operator of the node it looks at (default domain); "" means any
  const char* doc;
  bool (*apply)(Rewriter&, const Node&);  ///< false: nothing changed
};

/// Applies the rules until none matches any more (at most `max_rounds` times over the graph). Returns how often one
/// applied.
int apply_rules(GraphEditor& edit, std::span<const Rule> rules, int max_rounds = 20);

bool all_are(std::span<const int64_t> values, int64_t wanted);

/// Whether the operator works element by element on operands that broadcast from the right, whatever the order of axes.
bool is_broadcasting(const Node& node);

/// Whether the first output of a node, or what is computed from it element by element in the same kernel, is an output
/// of the graph: the caller wants that row-major, while tiles are computed with the channels of a place in vectors.
bool reaches_output(const Graph& graph, NodeId id);

/// Whether row i of the output (axis 0 of a tensor of rank 2 or more) needs just row i of the inputs that have rows:
/// conversions and arithmetic by elements.
bool works_by_row(const Node& node);

/// A shape as the second input of Reshape: numbers, 0 where the dim is copied from the same place of `from`, and at
/// most one -1. Nothing when it cannot be said so.
std::optional<std::vector<int64_t>> reshape_spec(const std::vector<Expr>& from, const std::vector<Expr>& to);

}  // namespace tensmith::graph
