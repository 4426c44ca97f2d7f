/// The model's graphs with local functions inlined.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/import/onnx_import.h"
#include "onnx.pb.h"

namespace tensmith::graph {

/// Versions by domain; "" is ai.onnx.
using Opsets = std::map<std::string, int64_t>;

struct FlatGraph;

/// One node; its attributes that are graphs stand in `subgraphs`.
struct FlatNode {
  onnx::NodeProto* proto = nullptr;
  const Opsets* opsets = nullptr;  ///< of the model, or of the function that the node comes from
  std::vector<std::pair<std::string, std::unique_ptr<FlatGraph>>> subgraphs;
};

struct FlatGraph {
  onnx::GraphProto* proto = nullptr;
  std::vector<FlatNode> nodes;
};

/// A model after inlining. Owns what was copied out of functions; the rest lies in the proto.
struct FlatModel {
  FlatGraph graph;
  std::deque<onnx::NodeProto> copies;
  std::deque<Opsets> opsets;
};

/// The versions that a list of imports states. Of two entries for a domain the higher one counts.
Opsets read_opsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports);

/// Inlines all calls of the model's functions, in subgraphs too.
/// Errors: UserError recursive-function, too-many-nodes, too-deep, bad-function.
FlatModel flatten(onnx::ModelProto& model, const ImportLimits& limits);

}  // namespace tensmith::graph
