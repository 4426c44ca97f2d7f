/// How nodes of a model are named in messages, and what a user can do about what is not supported.
#pragma once

#include <string>

#include "onnx.pb.h"
#include "runtime/base/result.h"

namespace tensmith::graph {

/// The domain of operators, with one name for the default one: "".
std::string normal_domain(const std::string& domain);
/// The node's own name, else that of its first output, else its operator's.
std::string node_name(const onnx::NodeProto& proto);
/// Text form `node 'x' (Conv)`.
std::string describe(const onnx::NodeProto& proto);

/// Throws the failure as UserError.
[[noreturn]] void throw_failure(const Failure& failure);
/// Ids of type rules that say "correct, but not supported" rather than "wrong".
bool is_unsupported(const std::string& id);
/// The way out for such an id.
std::string way_out_for(const std::string& id);
/// The way out for an operator that is not implemented.
std::string way_out_for_op(const std::string& op, const std::string& domain);

}  // namespace tensmith::graph
