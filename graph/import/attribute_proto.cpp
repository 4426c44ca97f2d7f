#include "graph/import/attribute_proto.h"

namespace tensmith::graph {

namespace {

/// Old writers leave the type out; then the one field that is set tells it.
onnx::AttributeProto::AttributeType type_of(const onnx::AttributeProto& p) {
  using A = onnx::AttributeProto;
  if (p.type() != A::UNDEFINED) return p.type();
  if (p.has_f()) return A::FLOAT;
  if (p.has_i()) return A::INT;
  if (p.has_s()) return A::STRING;
  if (p.has_t()) return A::TENSOR;
  if (p.has_g()) return A::GRAPH;
  if (p.floats_size() > 0) return A::FLOATS;
  if (p.ints_size() > 0) return A::INTS;
  if (p.strings_size() > 0) return A::STRINGS;
  return A::UNDEFINED;
}

}  // namespace

Result<AttrValue> read_attribute(onnx::AttributeProto& proto, const std::string& what, ExternalData& files,
                                 const ImportLimits& limits) {
  using A = onnx::AttributeProto;
  switch (type_of(proto)) {
    case A::FLOAT: return AttrValue(static_cast<double>(proto.f()));
    case A::INT: return AttrValue(static_cast<int64_t>(proto.i()));
    case A::STRING: return AttrValue(proto.s());
    case A::FLOATS: return AttrValue(std::vector<double>(proto.floats().begin(), proto.floats().end()));
    case A::INTS: return AttrValue(std::vector<int64_t>(proto.ints().begin(), proto.ints().end()));
    case A::STRINGS: return AttrValue(std::vector<std::string>(proto.strings().begin(), proto.strings().end()));
    case A::TENSOR: {
      auto tensor = read_tensor(*proto.mutable_t(), what, files, limits);
      if (!tensor) return tensor.failure();
      return AttrValue(std::move(tensor).value());
    }
    case A::SPARSE_TENSOR: {
      auto tensor = read_sparse_tensor(*proto.mutable_sparse_tensor(), what, files, limits);
      if (!tensor) return tensor.failure();
      return AttrValue(std::move(tensor).value());
    }
    case A::UNDEFINED: return Failure{"bad-attribute", what + ": expected a value, got none"};
    default:
      return Failure{"unsupported-attribute",
                     what + ": attributes of type " + std::to_string(proto.type()) + " are not supported"};
  }
}

}  // namespace tensmith::graph
