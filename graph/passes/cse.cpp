#include "graph/passes/cse.h"

#include <cstring>

#include "graph/text.h"

namespace tensmith::graph {

namespace {

/// Text that equal attributes share. Graphs are told apart by identity, tensors by their digest.
std::string key_of(const AttrValue& value) {
  struct Key {
    std::string operator()(int64_t x) const { return "i" + std::to_string(x); }
    std::string operator()(double x) const { return "f" + float_text(x); }
    std::string operator()(const std::string& x) const { return quote(x); }
    std::string operator()(const std::vector<int64_t>& x) const {
      std::string key = "I";
      for (int64_t e : x) key += std::to_string(e) + ",";
      return key;
    }
    std::string operator()(const std::vector<double>& x) const {
      std::string key = "F";
      for (double e : x) key += float_text(e) + ",";
      return key;
    }
    std::string operator()(const std::vector<std::string>& x) const {
      std::string key = "S";
      for (const std::string& e : x) key += quote(e);
      return key;
    }
    std::string operator()(const Constant& x) const { return "@" + digest(x); }
    std::string operator()(DType x) const { return to_string(x); }
    std::string operator()(const std::shared_ptr<Graph>& x) const {
      return "g" + std::to_string(reinterpret_cast<uintptr_t>(x.get()));
    }
  };
  return std::visit(Key{}, value);
}

/// A few bytes from all over the content: differs for nearly all weights that differ, at no cost.
std::string sample_of(const Constant& c) {
  const auto bytes = static_cast<size_t>(c.num_bytes());
  if (bytes <= 64) return std::string(static_cast<const char*>(c.data()), bytes);
  std::string sample;
  for (size_t k = 0; k < 64; ++k) sample += static_cast<const char*>(c.data())[k * (bytes - 1) / 63];
  return sample;
}

int merge_constants(GraphEditor& edit) {
  const Graph& graph = edit.graph();
  std::map<std::string, std::vector<Value>> groups;
  for (NodeId id : graph.topological_order())
    if (const Constant* c = graph.constant({id, 0}))
      groups[to_string(static_type(c->dtype(), c->shape())) + sample_of(*c)].push_back({id, 0});
  int merged = 0;
  for (const auto& [key, values] : groups) {
    for (size_t k = 1; k < values.size(); ++k)
      for (size_t first = 0; first < k; ++first) {
        if (!graph.alive(values[first].node)) continue;
        const Constant &a = *graph.constant(values[first]), &b = *graph.constant(values[k]);
        if (a.data() != b.data() && std::memcmp(a.data(), b.data(), static_cast<size_t>(a.num_bytes())) != 0) continue;
        edit.replace_uses(values[k], values[first]);
        edit.erase(values[k].node);
        ++merged;
        break;
      }
  }
  return merged;
}

}  // namespace

int eliminate_common(GraphEditor& edit, const PassOptions&) {
  int merged = merge_constants(edit);
  const Graph& graph = edit.graph();
  std::unordered_map<std::string, NodeId> seen;
  for (NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (node.op->is_source) continue;
    std::string key = node.op->domain + "::" + node.op->name + "/" + std::to_string(node.types.size());
    for (const Value& input : node.inputs) key += "," + std::to_string(input.node) + "." + std::to_string(input.output);
    for (const auto& [name, value] : node.attrs.all()) key += ";" + name + "=" + key_of(value);
    const auto [it, fresh] = seen.emplace(std::move(key), id);
    if (fresh) continue;
    const Node& first = graph.node(it->second);
    bool same = true;  // sizes that only the data decide are distinct symbols
    for (size_t k = 0; k < node.types.size(); ++k) same &= same_type(node.types[k], first.types[k]);
    if (!same) continue;
    for (size_t k = 0; k < node.types.size(); ++k)
      edit.replace_uses({id, static_cast<int>(k)}, {it->second, static_cast<int>(k)});
    edit.erase(id);
    ++merged;
  }
  return merged;
}

int eliminate_dead(GraphEditor& edit, const PassOptions&) { return edit.erase_dead(); }

}  // namespace tensmith::graph
