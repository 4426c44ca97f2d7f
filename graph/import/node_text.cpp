#include "graph/import/node_text.h"

#include "runtime/base/error.h"

namespace tensmith::graph {

std::string normal_domain(const std::string& domain) { return domain == "ai.onnx" ? std::string() : domain; }

std::string node_name(const onnx::NodeProto& proto) {
  if (!proto.name().empty()) return proto.name();
  for (const std::string& output : proto.output())
    if (!output.empty()) return output;
  return proto.op_type();
}

std::string describe(const onnx::NodeProto& proto) {
  return "node '" + node_name(proto) + "' (" + proto.op_type() + ")";
}

void throw_failure(const Failure& failure) { throw UserError(failure.id, failure.message); }

bool is_unsupported(const std::string& id) { return id.starts_with("unsupported-") || id.starts_with("dynamic-"); }

std::string way_out_for(const std::string& id) {
  if (id.starts_with("dynamic-")) return "give open dims a size with --dim NAME=SIZE";
  if (id == "unsupported-dtype") return "convert the model to float32 or another listed type";
  return "rewrite this part of the model with supported operators";
}

std::string way_out_for_op(const std::string& op, const std::string& domain) {
  if (domain == "com.microsoft" || domain.starts_with("com.microsoft."))
    return "export the model without ONNX Runtime's optimiser";
  if (domain == "ai.onnx.ml") return "export classical models as tensor operators, for example with hummingbird";
  if (domain.starts_with("ai.onnx.")) return "export the model for inference";
  if (!domain.empty())
    return "export the model with operators of the default domain, or with a local function for this one";
  if (op.find("Sequence") != std::string::npos) return "replace sequences by tensors (Concat, Split, Gather)";
  if (op.find("Random") != std::string::npos || op == "Bernoulli" || op == "Multinomial")
    return "make random numbers an input of the model";
  if (op.find("String") != std::string::npos || op == "TfIdfVectorizer")
    return "do text processing in front of the model";
  return "rewrite this part of the model with supported operators";
}

}  // namespace tensmith::graph
