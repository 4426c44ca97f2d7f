/// Everything in a model that Tensmith cannot do, in one table.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"

namespace tensmith::graph {

/// One kind of obstacle.
struct UnsupportedRow {
  std::string op;          ///< operator type; "(input)", "(tensor)" and the like for what is no operator
  std::string domain;      ///< "" is ai.onnx
  int64_t version = 0;     ///< opset of the domain that the model asks for
  int64_t count = 0;       ///< how many nodes
  std::string first_node;  ///< name of the first of them
  std::string id;          ///< kebab-case id for `tensmith explain`
  std::string why;
  std::string way_out;
};

/// Rows in the order in which the obstacles were met.
struct UnsupportedReport {
  std::vector<UnsupportedRow> rows;

  bool empty() const { return rows.empty(); }
  /// Adds to the row of the same op, domain, version and id, or starts a new one.
  void add(UnsupportedRow row);
};

/// A table for people: one obstacle a paragraph.
std::string to_string(const UnsupportedReport& report);
/// A list of objects with the fields' names as keys.
Json to_json(const UnsupportedReport& report);

}  // namespace tensmith::graph
