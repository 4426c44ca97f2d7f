// Loops whose number of turns is known are unrolled: shapes that differ by turn, and conditions that the turn decides,
// are then those of any other graph.
#include <algorithm>

#include "graph/import/graph_importer.h"
#include "graph/inline.h"
#include "graph/known_value.h"

namespace tensmith::graph {

namespace {

/// Nodes that the turns of one loop may become; beyond, compiling costs more than a loop at run time would. All loops
/// of the model share ImportLimits::unrolled_nodes.
constexpr int64_t kMostUnrolledNodes = 20'000;

/// Nodes of a graph and of the graphs in it, which are copied with it.
int64_t total_nodes(const Graph& graph) {
  int64_t total = 0;
  for (NodeId id : graph.topological_order()) {
    ++total;
    for (const auto& [name, value] : graph.node(id).attrs.all())
      if (const auto* inner = std::get_if<std::shared_ptr<Graph>>(&value); inner && *inner)
        total += total_nodes(**inner);
  }
  return total;
}

/// Builds the nodes around the turns. What it has built goes away with it unless it is kept.
class Unroller {
 public:
  /// `budget`: nodes that may still be made; what is made is taken from it, kept or not, so that attempts that fail
  /// cannot be repeated without end.
  Unroller(GraphEditor& edit, const NodeForm& form, const Graph& body, int64_t& budget)
      : edit_(edit),
        form_(form),
        body_(body),
        budget_(budget),
        most_(std::min(budget, kMostUnrolledNodes)),
        a_turn_(std::max<int64_t>(total_nodes(body), 1)),
        first_(edit.graph().end_id()) {}
  Unroller(const Unroller&) = delete;
  Unroller& operator=(const Unroller&) = delete;
  ~Unroller() {
    budget_ -= std::max<int64_t>(edit_.graph().end_id() - first_, turns_ * a_turn_);
    // Later nodes read only earlier ones, and nothing but these reads them.
    for (NodeId id = edit_.graph().end_id() - 1; !kept_ && id >= first_; --id)
      if (edit_.graph().alive(id)) edit_.erase(id);
  }

  bool affordable(int64_t turns) const { return turns <= most_ / a_turn_; }
  /// The values have become the outputs of the loop.
  std::vector<Value> keep(std::vector<Value> outputs) {
    kept_ = true;
    return outputs;
  }
  Value input(size_t k) const { return k < form_.inputs.size() ? form_.inputs[k] : Value{}; }
  const TensorType& type(Value v) const { return edit_.graph().type(v); }
  Value number(int64_t value) { return edit_.add_constant(Constant::from_ints(kInt64, {}, std::span(&value, 1))); }
  Value condition(bool holds) {
    const int64_t value = holds;
    return edit_.add_constant(Constant::from_ints(kBool, {}, std::span(&value, 1)));
  }
  Value add(const std::string& op, std::vector<Value> inputs, AttrMap attrs = {}) {
    return {edit_.add(op, std::move(inputs), std::move(attrs), form_.name + "." + std::to_string(made_++)), 0};
  }
  Value at_axis(const std::string& op, std::vector<Value> inputs, int64_t axis) {
    AttrMap attrs;
    attrs.set("axis", axis);
    return add(op, std::move(inputs), std::move(attrs));
  }
  /// The turns' results side by side along a new axis.
  Value stack(const std::vector<Value>& slices, int64_t axis) {
    std::vector<Value> rows;
    for (const Value& slice : slices) {
      const Value at = edit_.add_constant(Constant::from_ints(kInt64, {1}, std::span(&axis, 1)));
      rows.push_back(add("Unsqueeze", {slice, at}));
    }
    return rows.size() == 1 ? rows[0] : at_axis("Concat", rows, axis);
  }
  /// One turn; the values read from the surrounding graph come last.
  std::vector<Value> turn(std::vector<Value> formals, size_t captures, int64_t number) {
    ++turns_;
    formals.insert(formals.end(), form_.inputs.end() - static_cast<std::ptrdiff_t>(captures), form_.inputs.end());
    return inline_graph(edit_, body_, formals, form_.name + "." + std::to_string(number));
  }

 private:
  GraphEditor& edit_;
  const NodeForm& form_;
  const Graph& body_;
  int64_t& budget_;
  const int64_t most_, a_turn_;
  const NodeId first_;
  int64_t turns_ = 0;
  int made_ = 0;
  bool kept_ = false;
};

int64_t entry(const std::vector<int64_t>& list, size_t k) { return k < list.size() ? list[k] : 0; }

std::optional<int64_t> known_number(const Graph& graph, Value value) {
  if (!value.given()) return std::nullopt;
  const std::optional<Constant> constant = known_value(graph, value);
  if (!constant || constant->num_elements() != 1) return std::nullopt;
  return constant->int_at(0);
}

/// The outputs of a Loop: what it carries, then the stacked results. Nothing when a turn or the end is not known.
std::optional<std::vector<Value>> unroll_loop(GraphEditor& edit, const NodeForm& form, const Graph& body,
                                              size_t captures, int64_t& budget) {
  Unroller build(edit, form, body, budget);
  const size_t carried = form.inputs.size() - captures < 2 ? 0 : form.inputs.size() - captures - 2;
  const std::optional<int64_t> count = known_number(edit.graph(), build.input(0));
  const std::optional<int64_t> start = known_number(edit.graph(), build.input(1));
  const bool endless = !build.input(0).given();
  if ((!count && !endless) || (build.input(1).given() && !start) || body.outputs.size() < 1 + carried)
    return std::nullopt;
  std::vector<Value> state(form.inputs.begin() + 2, form.inputs.begin() + 2 + static_cast<std::ptrdiff_t>(carried));
  std::vector<std::vector<Value>> results(body.outputs.size() - 1 - carried);
  bool running = !start || *start != 0;
  for (int64_t k = 0; running && (endless || k < *count); ++k) {
    if (!build.affordable(k + 1)) return std::nullopt;
    // The body was read for the types of the first turn.
    for (size_t v = 0; v < carried; ++v)
      if (!same_type(build.type(state[v]), body.type({body.inputs[v + 2], 0}))) return std::nullopt;
    std::vector<Value> formals{build.number(k), build.condition(true)};
    formals.insert(formals.end(), state.begin(), state.end());
    const std::vector<Value> outputs = build.turn(formals, captures, k);
    const std::optional<int64_t> goes_on = known_number(edit.graph(), outputs[0]);
    if (!goes_on) return std::nullopt;
    running = *goes_on != 0;
    state.assign(outputs.begin() + 1, outputs.begin() + 1 + static_cast<std::ptrdiff_t>(carried));
    for (size_t r = 0; r < results.size(); ++r) results[r].push_back(outputs[1 + carried + r]);
  }
  for (const std::vector<Value>& slices : results) {
    if (slices.empty()) return std::nullopt;  // no turn: nothing tells the type
    for (const Value& slice : slices)
      if (!same_type(build.type(slice), build.type(slices[0]))) return std::nullopt;
    state.push_back(build.stack(slices, 0));
  }
  return build.keep(std::move(state));
}

/// The outputs of a Scan: the states, then the stacked results.
std::optional<std::vector<Value>> unroll_scan(GraphEditor& edit, const NodeForm& form, const Graph& body,
                                              size_t captures, int64_t& budget) {
  Unroller build(edit, form, body, budget);
  const size_t given = form.inputs.size() - captures;
  const auto scans = static_cast<size_t>(std::max<int64_t>(form.attrs.get_int("num_scan_inputs", 0), 0));
  if (scans == 0 || scans > given || body.outputs.size() < given - scans) return std::nullopt;
  const size_t states = given - scans;
  const std::vector<int64_t> axes = form.attrs.get_ints("scan_input_axes"),
                             backward = form.attrs.get_ints("scan_input_directions"),
                             out_axes = form.attrs.get_ints("scan_output_axes"),
                             out_backward = form.attrs.get_ints("scan_output_directions");
  std::optional<int64_t> count;
  std::vector<int64_t> axis_of(scans);
  for (size_t k = 0; k < scans; ++k) {
    const TensorType& type = build.type(build.input(states + k));
    const int64_t axis = entry(axes, k) < 0 ? entry(axes, k) + type.rank() : entry(axes, k);
    if (axis < 0 || axis >= type.rank()) return std::nullopt;
    const auto* extent = type.shape[static_cast<size_t>(axis)].as<IntImm>();
    if (!extent || (count && *count != extent->value)) return std::nullopt;
    axis_of[k] = axis;
    count = extent->value;
  }
  if (*count == 0 || !build.affordable(*count)) return std::nullopt;
  std::vector<Value> state(form.inputs.begin(), form.inputs.begin() + static_cast<std::ptrdiff_t>(states));
  std::vector<std::vector<Value>> results(body.outputs.size() - states);
  for (int64_t turn = 0; turn < *count; ++turn) {
    for (size_t v = 0; v < states; ++v)
      if (!same_type(build.type(state[v]), body.type({body.inputs[v], 0}))) return std::nullopt;
    std::vector<Value> formals = state;
    for (size_t k = 0; k < scans; ++k) {
      const int64_t at = entry(backward, k) != 0 ? *count - 1 - turn : turn;
      formals.push_back(build.at_axis("Gather", {build.input(states + k), build.number(at)}, axis_of[k]));
    }
    const std::vector<Value> outputs = build.turn(formals, captures, turn);
    state.assign(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(states));
    for (size_t r = 0; r < results.size(); ++r) {
      const Value slice = outputs[states + r];
      if (entry(out_backward, r) != 0) results[r].insert(results[r].begin(), slice);
      else results[r].push_back(slice);
    }
  }
  for (size_t r = 0; r < results.size(); ++r) {
    const int rank = build.type(results[r][0]).rank() + 1;
    const int64_t axis = entry(out_axes, r) < 0 ? entry(out_axes, r) + rank : entry(out_axes, r);
    if (axis < 0 || axis >= rank) return std::nullopt;
    state.push_back(build.stack(results[r], axis));
  }
  return build.keep(std::move(state));
}

}  // namespace

bool GraphImporter::import_unrolled(const FlatNode& node, NodeForm& form) {
  if (!form.domain.empty() || (form.op != "Loop" && form.op != "Scan")) return false;
  if (form.op == "Scan" && form.opset < 9) return false;
  const auto body = form.attrs.get_graph("body");
  if (!body) return false;
  const auto captures = static_cast<size_t>(form.attrs.get_int("captures", 0));
  if (body->inputs.size() != form.inputs.size() || (form.op == "Loop" && body->outputs.empty())) return false;
  const auto unroll = form.op == "Loop" ? unroll_loop : unroll_scan;
  const auto outputs = unroll(editor_, form, *body, captures, session_.unrolled_nodes);
  if (!outputs) return false;
  finish(node, *outputs);
  return true;
}

}  // namespace tensmith::graph
