// Values of a graph that no node makes: initializers, inputs, and what the surrounding graphs know.
#include "graph/import/graph_importer.h"
#include "graph/import/node_text.h"
#include "runtime/base/shape.h"

namespace tensmith::graph {

void GraphImporter::define_initializers() {
  for (onnx::TensorProto& tensor : *flat_.proto->mutable_initializer())
    TS_USER_CHECK(initializers_.emplace(tensor.name(), &tensor).second, "duplicate-name")
        << "graph " << flat_.proto->name() << ": initializer '" << tensor.name()
        << "': expected one definition, got two";
  for (onnx::SparseTensorProto& tensor : *flat_.proto->mutable_sparse_initializer())
    TS_USER_CHECK(!initializers_.count(tensor.values().name()) &&
                      sparse_initializers_.emplace(tensor.values().name(), &tensor).second,
                  "duplicate-name")
        << "graph " << flat_.proto->name() << ": initializer '" << tensor.values().name()
        << "': expected one definition, got two";
  for (const auto& info : flat_.proto->value_info()) declared_.emplace(info.name(), &info);
  for (const auto& info : flat_.proto->output()) declared_.emplace(info.name(), &info);
  for (const FlatNode& node : flat_.nodes) {
    for (const std::string& name : node.proto->input()) ++reads_[name];
    for (const auto& [attr, subgraph] : node.subgraphs)
      for (const std::string& name : free_names(*subgraph, session_)) ++reads_[name];
  }
  for (const auto& output : flat_.proto->output()) ++reads_[output.name()];
}

Expr GraphImporter::input_dim(const std::string& input, int axis, const onnx::TensorShapeProto::Dimension& dim) {
  const std::string place = input + "." + std::to_string(axis);
  const auto& sizes = session_.options.dims;
  if (dim.has_dim_value() && dim.dim_value() >= 0) {
    TS_USER_CHECK(dim.dim_value() <= kMaxDim, "bad-shape")
        << "input " << input << ": dim " << axis << ": expected at most 2^40, got " << dim.dim_value();
    return dim.dim_value();
  }
  // Writers mark a dim without a name as "?" or as a negative size.
  const bool named = !dim.dim_param().empty() && dim.dim_param() != "?";
  for (const std::string& key : {place, dim.dim_param()}) {
    const auto size = sizes.find(key);
    if (size == sizes.end()) continue;
    session_.used_dims.insert(key);
    TS_USER_CHECK(size->second >= 0 && size->second <= kMaxDim, "bad-dim")
        << "dim " << key << ": expected 0 to 2^40, got " << size->second;
    if (named) session_.used_dims.insert(dim.dim_param());
    return size->second;
  }
  if (const auto shape = session_.options.input_shapes.find(input);
      shape != session_.options.input_shapes.end() && axis < static_cast<int>(shape->second.size()))
    return shape->second[static_cast<size_t>(axis)];
  return editor_.dim(named ? dim.dim_param() : place);
}

std::optional<Expr> GraphImporter::known_dim(const std::string& name) const {
  for (const Var& dim : editor_.graph().dims)
    if (dim.name() == name) return Expr(dim);
  return std::nullopt;
}

std::optional<TensorType> GraphImporter::declared_type(const onnx::ValueInfoProto& info, bool is_input) {
  const onnx::TypeProto& type = info.type();
  if (type.value_case() != onnx::TypeProto::kTensorType || !type.tensor_type().has_shape()) return std::nullopt;
  const auto dtype = onnx_dtype(type.tensor_type().elem_type());
  if (!dtype || type.tensor_type().shape().dim_size() > kMaxRank) return std::nullopt;
  TensorType result{*dtype, {}, {}};
  int axis = 0;
  for (const auto& dim : type.tensor_type().shape().dim()) {
    if (is_input) result.shape.push_back(input_dim(info.name(), axis, dim));
    else if (dim.has_dim_value() && dim.dim_value() >= 0 && dim.dim_value() <= kMaxDim)
      result.shape.push_back(dim.dim_value());
    else if (const auto known = known_dim(dim.dim_param())) result.shape.push_back(*known);
    else
      return std::nullopt;  // a name that only the exporter understands would make the operators behind look
                            // unsupported
    ++axis;
  }
  return result;
}

void GraphImporter::define_inputs() {
  for (const auto& input : flat_.proto->input()) {
    TS_USER_CHECK(!input.name().empty(), "bad-input")
        << "graph " << flat_.proto->name() << ": expected inputs with names, got one without";
    // Until IR version 4 weights had to be inputs too; the value in the file is then only a default, which is what
    // everybody wants.
    if (initializers_.count(input.name()) || sparse_initializers_.count(input.name())) continue;
    auto type_of_input = declared_type(input, /*is_input=*/true);
    if (const auto fixed = session_.options.constants.find(input.name()); fixed != session_.options.constants.end()) {
      const TensorType given = static_type(fixed->second.dtype(), fixed->second.shape());
      session_.used_constants.insert(input.name());
      TS_USER_CHECK(!type_of_input || (type_of_input->dtype == given.dtype && type_of_input->rank() == given.rank()),
                    "bad-input")
          << "input " << input.name() << ": expected " << to_string(*type_of_input) << ", got a constant of "
          << to_string(given);
      define(input.name(), {editor_.add_constant(fixed->second, input.name()), true});
      continue;
    }
    if (auto& type = type_of_input) {
      define(input.name(), {editor_.add_input(input.name(), std::move(*type)), true});
      continue;
    }
    const onnx::TypeProto& type = input.type();
    const bool tensor = type.value_case() == onnx::TypeProto::kTensorType;
    std::string why = "it is a sequence, map, optional or sparse tensor", id = "unsupported-type",
                way_out = "make it a tensor";
    if (tensor && !onnx_dtype(type.tensor_type().elem_type())) {
      id = "unsupported-dtype";
      why = onnx_dtype(type.tensor_type().elem_type()).failure().message;
      way_out = way_out_for(id);
    } else if (tensor) {
      id = "dynamic-rank";
      why = "its shape is not declared";
      way_out = "declare the input's shape in the model (open dims may stay open)";
    }
    session_.result.unsupported.add(
        {"(input)", "", 0, 1, input.name(), id, "input '" + input.name().substr(0, 200) + "': " + why, way_out});
    complete_ = false;
    define(input.name(), {});
  }
}

const GraphImporter::Known* GraphImporter::find(const std::string& name) {
  if (const auto found = values_.find(name); found != values_.end()) return &found->second;
  Result<Constant> constant = Failure{};
  if (const auto found = initializers_.find(name); found != initializers_.end())
    constant = read_tensor(*found->second, "initializer '" + name + "'", session_.files, session_.options.limits,
                           session_.large);
  else if (const auto sparse = sparse_initializers_.find(name); sparse != sparse_initializers_.end())
    constant =
        read_sparse_tensor(*sparse->second, "initializer '" + name + "'", session_.files, session_.options.limits);
  else if (const Constant* outer = outer_constant(name)) constant = *outer;
  else return nullptr;
  Known known;
  if (constant) {
    known = {editor_.add_constant(std::move(constant).value(), name), true};
  } else {
    const Failure& failure = constant.failure();
    if (!is_unsupported(failure.id)) throw_failure(failure);
    session_.result.unsupported.add({"(tensor)", "", 0, 1, name, failure.id, failure.message, way_out_for(failure.id)});
    complete_ = false;
  }
  return &(values_[name] = known);
}

bool GraphImporter::visible(const std::string& name) {
  for (GraphImporter* scope = this; scope; scope = scope->outer_)
    if (scope->values_.count(name) || scope->initializers_.count(name) || scope->sparse_initializers_.count(name))
      return true;
  return false;
}

const Constant* GraphImporter::outer_constant(const std::string& name) {
  if (!outer_) return nullptr;
  const Known* known = outer_->find(name);
  return known && known->typed ? outer_->editor_.graph().constant(known->value) : nullptr;
}

}  // namespace tensmith::graph
