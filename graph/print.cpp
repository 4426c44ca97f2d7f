#include "graph/element.h"
#include "graph/op_def.h"
#include "graph/text.h"

namespace tensmith::graph {

namespace {

template <typename List, typename Fn>
std::string joined(const List& list, const Fn& text) {
  std::string out;
  for (const auto& item : list) {
    if (!out.empty()) out += ", ";
    out += text(item);
  }
  return out;
}

/// Names of symbolic dims, unique over the whole text; shared by a graph and its subgraphs.
class DimNames {
 public:
  std::string of(const VarNode* var) {
    const auto known = names_.find(var);
    if (known != names_.end()) return known->second;
    std::string name = var->name.empty() ? "d" : var->name;
    for (int k = 1; !taken_.insert(name).second; ++k) name = var->name + "_" + std::to_string(k);
    return names_[var] = is_plain_dim_name(name) ? name : quote(name);
  }

 private:
  std::unordered_map<const VarNode*, std::string> names_;
  std::unordered_set<std::string> taken_;
};

class Printer {
 public:
  Printer(const Graph& graph, const PrintOptions& options, DimNames& dims, std::string indent)
      : graph_(graph), options_(options), dims_(dims), indent_(std::move(indent)) {}

  std::string run() {
    std::string out = "graph " + quote(graph_.name) + " {\n";
    if (!graph_.dims.empty())
      out +=
          indent_ + "  dims " + joined(graph_.dims, [&](const Var& dim) { return dims_.of(dim.operator->()); }) + "\n";
    for (NodeId id : graph_.inputs) out += statement(graph_.node(id));
    static const OpDef* const input_op = find_op("Input", "tensmith");
    for (NodeId id : graph_.topological_order())
      if (graph_.node(id).op != input_op) out += statement(graph_.node(id));
    for (size_t k = 0; k < graph_.outputs.size(); ++k)
      out += indent_ + "  return " + value(graph_.outputs[k]) + " as " + quote(graph_.output_names[k]) + "\n";
    return out + indent_ + "}";
  }

 private:
  static std::string value_text(const std::string& name) { return "%" + (is_plain_name(name) ? name : quote(name)); }
  std::string value(Value v) const { return v.given() ? value_text(graph_.value_name(v)) : "_"; }

  std::string type(const TensorType& t) {
    const auto dim = [&](const Expr& e) { return dim_text(e, [&](const VarNode* var) { return dims_.of(var); }); };
    return to_string(t.dtype) + "[" + joined(t.shape, dim) + "]";
  }

  std::string tensor(const Constant& constant) const {
    std::string out = to_string(static_type(constant.dtype(), constant.shape())) + " ";
    const int64_t count = constant.num_elements();
    if (count > options_.max_inline) {
      if (!options_.all_content) return out + "@" + digest(constant);
      return out + "base64 \"" + base64_encode(constant.data(), static_cast<size_t>(constant.num_bytes())) + "\"";
    }
    out += "{";
    for (int64_t k = 0; k < count; ++k) {
      if (k) out += ", ";
      const DType dtype = constant.dtype();
      if (dtype == kFloat64) out += float_text(constant.float_at(k));
      else if (dtype.is_float()) out += float_text(static_cast<float>(constant.float_at(k)));
      else out += std::to_string(constant.int_at(k));
    }
    return out + "}";
  }

  std::string attr(const AttrValue& v) {
    struct Text {
      Printer& printer;
      std::string operator()(int64_t x) const { return std::to_string(x); }
      std::string operator()(double x) const { return float_text(x); }
      std::string operator()(const std::string& x) const { return quote(x); }
      std::string operator()(const std::vector<int64_t>& x) const {
        return (x.empty() ? "ints [" : "[") + joined(x, [](int64_t e) { return std::to_string(e); }) + "]";
      }
      std::string operator()(const std::vector<double>& x) const {
        return (x.empty() ? "floats [" : "[") + joined(x, [](double e) { return float_text(e); }) + "]";
      }
      std::string operator()(const std::vector<std::string>& x) const {
        return (x.empty() ? "strings [" : "[") + joined(x, [](const std::string& e) { return quote(e); }) + "]";
      }
      std::string operator()(const Constant& x) const { return printer.tensor(x); }
      std::string operator()(DType x) const { return to_string(x); }
      std::string operator()(const std::shared_ptr<Graph>& x) const {
        return Printer(*x, printer.options_, printer.dims_, printer.indent_ + "  ").run();
      }
    };
    return std::visit(Text{*this}, v);
  }

  std::string statement(const Node& node) {
    static const OpDef* const input_op = find_op("Input", "tensmith");
    static const OpDef* const constant_op = find_op("Constant", "tensmith");
    std::string out = indent_ + "  ";
    const std::string name =
        node.output_names.empty() || node.name != node.output_names[0] ? " " + quote(node.name) : "";
    if (node.op == constant_op)
      return out + value_text(node.output_names[0]) + " = " + tensor(*node.attrs.get_tensor("value")) + name + "\n";
    for (size_t k = 0; k < node.types.size(); ++k)
      out += (k ? ", " : "") + value_text(node.output_names[k]) + ": " + type(node.types[k]);
    out += " = ";
    if (node.op == input_op) return out + "input" + name + "\n";
    if (!node.op->domain.empty()) out += node.op->domain + "::";
    out += node.op->name + "(" + joined(node.inputs, [&](Value v) { return value(v); }) + ")";
    if (!node.attrs.all().empty())
      out += " {" + joined(node.attrs.all(), [&](const auto& item) { return item.first + " = " + attr(item.second); }) +
             "}";
    return out + name + "\n";
  }

  const Graph& graph_;
  const PrintOptions& options_;
  DimNames& dims_;
  std::string indent_;
};

void collect_large(const Graph& graph, ConstantTable& table) {
  for (NodeId id : graph.topological_order())
    for (const auto& [name, value] : graph.node(id).attrs.all()) {
      if (const auto* tensor = std::get_if<Constant>(&value);
          tensor && tensor->num_elements() > PrintOptions{}.max_inline)
        table.emplace(digest(*tensor), *tensor);
      if (const auto* subgraph = std::get_if<std::shared_ptr<Graph>>(&value)) collect_large(**subgraph, table);
    }
}

}  // namespace

std::string to_string(const Graph& graph, const PrintOptions& options) {
  DimNames dims;
  return Printer(graph, options, dims, "").run() + "\n";
}

std::string to_string(const Graph& graph) { return to_string(graph, PrintOptions{}); }

ConstantTable large_constants(const Graph& graph) {
  ConstantTable table;
  collect_large(graph, table);
  return table;
}

}  // namespace tensmith::graph
