#include "graph/passes/decompose.h"

namespace tensmith::graph {

int decompose(GraphEditor& edit, const PassOptions&) {
  const Graph& graph = edit.graph();
  int count = 0;
  // What comes out of a decomposition may have one of its own.
  for (bool again = true; again;) {
    again = false;
    for (NodeId id : graph.topological_order()) {
      const Node& node = graph.node(id);
      if (node.op->compute || !node.op->decompose) continue;
      const std::vector<Value> outputs = node.op->decompose(edit, node);
      if (outputs.empty()) continue;  // nothing to put in its place here
      TS_CHECK(outputs.size() >= node.types.size()) << "decomposition of " << node.op->name << " gives "
                                                    << outputs.size() << " of " << node.types.size() << " values";
      const size_t outputs_of_node = node.types.size();
      const std::vector<std::string> names = node.output_names;
      for (size_t k = 0; k < outputs_of_node; ++k) edit.replace_uses_retyped({id, static_cast<int>(k)}, outputs[k]);
      edit.erase(id);
      for (size_t k = 0; k < outputs_of_node; ++k)
        if (outputs[k].given() && graph.alive(outputs[k].node)) edit.set_output_name(outputs[k], names[k]);
      ++count;
      again = true;
    }
  }
  return count;
}

}  // namespace tensmith::graph
