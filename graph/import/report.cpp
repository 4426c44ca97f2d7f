#include "graph/import/report.h"

#include <nlohmann/json.hpp>

namespace tensmith::graph {

void UnsupportedReport::add(UnsupportedRow row) {
  for (UnsupportedRow& known : rows)
    if (known.op == row.op && known.domain == row.domain && known.version == row.version && known.id == row.id) {
      ++known.count;
      return;
    }
  row.count = 1;
  rows.push_back(std::move(row));
}

std::string to_string(const UnsupportedReport& report) {
  std::string text;
  for (const UnsupportedRow& row : report.rows) {
    text += row.op + " (" + (row.domain.empty() ? "ai.onnx" : row.domain) + ", opset " + std::to_string(row.version) +
            "): " + std::to_string(row.count) + (row.count == 1 ? " node" : " nodes") + ", first '" + row.first_node +
            "' [" + row.id + "]\n";
    text += "  why:     " + row.why + "\n";
    text += "  way out: " + row.way_out + "\n";
  }
  return text;
}

Json to_json(const UnsupportedReport& report) {
  Json list = Json::array();
  for (const UnsupportedRow& row : report.rows)
    list.push_back({{"op", row.op},
                    {"domain", row.domain},
                    {"version", row.version},
                    {"count", row.count},
                    {"first_node", row.first_node},
                    {"id", row.id},
                    {"why", row.why},
                    {"way_out", row.way_out}});
  return list;
}

}  // namespace tensmith::graph
