#include <algorithm>
#include <charconv>

#include "graph/element.h"
#include "graph/lexer.h"
#include "graph/op_def.h"
#include "graph/parse_dim.h"
#include "graph/text.h"

namespace tensmith::graph {

namespace {

constexpr int kMaxNesting = 64;

class Parser {
 public:
  Parser(Lexer& lexer, const ConstantTable& constants, DimScope& dims, int depth)
      : lex_(lexer), constants_(constants), dims_(dims), depth_(depth) {}

  Result<Graph> run() {
    if (depth_ > kMaxNesting) return lex_.error("graphs are nested deeper than " + std::to_string(kMaxNesting));
    if (!lex_.accept_word("graph")) return lex_.expected("'graph'");
    auto name = lex_.string();
    if (!name) return name.failure();
    graph_.name = *name;
    if (!lex_.accept("{")) return lex_.expected("'{'");
    std::vector<Value> outputs;
    std::vector<std::string> output_names;
    while (!lex_.accept("}")) {
      if (lex_.accept_word("dims")) {
        do {
          auto dim = dim_name();
          if (!dim) return dim.failure();
          graph_.dims.push_back(dims_.declare(*dim));
        } while (lex_.accept(","));
      } else if (lex_.accept_word("return")) {
        auto value = value_name();
        if (!value) return value.failure();
        const auto found = values_.find(*value);
        if (found == values_.end()) return lex_.error("value %" + *value + " is not defined");
        if (!lex_.accept_word("as")) return lex_.expected("'as'");
        auto as = lex_.string();
        if (!as) return as.failure();
        outputs.push_back(found->second);
        output_names.push_back(*as);
      } else if (lex_.peek() == '%') {
        if (auto ok = statement(); !ok) return ok.failure();
      } else {
        return lex_.expected("a statement, 'return' or '}'");
      }
    }
    editor_.set_outputs(std::move(outputs), std::move(output_names));
    return std::move(graph_);
  }

 private:
  struct Target {
    std::string name;
    std::optional<TensorType> type;
  };

  Result<std::string> dim_name() {
    if (lex_.peek() == '"') return lex_.string();
    const std::string_view name = lex_.identifier();
    if (name.empty()) return lex_.expected("the name of a dim");
    return std::string(name);
  }

  Result<std::string> value_name() {
    if (!lex_.accept("%")) return lex_.expected("a value such as %x");
    if (lex_.peek() == '"') return lex_.string();
    const std::string_view name = lex_.word();
    if (name.empty()) return lex_.expected("the name of a value");
    return std::string(name);
  }

  Result<TensorType> type() {
    auto dtype = parse_dtype(lex_.identifier());
    if (!dtype || !dtype->is_scalar() || dtype->is_handle()) return lex_.expected("an element type in front of this");
    return shape(*dtype);
  }

  Result<TensorType> shape(DType dtype) {
    TensorType result{dtype, {}, {}};
    if (!lex_.accept("[")) return lex_.expected("'['");
    while (!lex_.accept("]")) {
      if (!result.shape.empty() && !lex_.accept(",")) return lex_.expected("',' or ']'");
      auto dim = parse_dim(lex_, dims_);
      if (!dim) return dim.failure();
      result.shape.push_back(*dim);
    }
    return result;
  }

  template <typename T>
  Result<T> number(const char* what) {
    const std::string_view text = lex_.number();
    T value{};
    if (std::is_floating_point_v<T> && text == "nan") return std::numeric_limits<T>::quiet_NaN();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || end != text.data() + text.size())
      return lex_.expected(std::string(what) + " in front of this");
    return value;
  }

  Result<double> float_element(DType dtype) {
    if (dtype == kFloat64) return number<double>("a float");
    auto value = number<float>("a float");
    if (!value) return value.failure();
    return static_cast<double>(*value);
  }

  /// The content behind a type: `{1, 2}`, `@digest` or `base64 "..."`.
  Result<Constant> content(const TensorType& type) {
    if (!type.is_static()) return lex_.error("a constant needs fixed dims");
    const std::vector<int64_t> dims = type.static_shape();
    int64_t count = 1;
    for (int64_t dim : dims)
      if (dim < 0 || __builtin_mul_overflow(count, dim, &count)) return lex_.error("the number of elements overflows");
    if (lex_.accept("@")) {
      const std::string digest(lex_.identifier());
      const auto found = constants_.find(digest);
      if (found == constants_.end()) return lex_.error("constant @" + digest + " is not in the table of constants");
      if (!same_type(static_type(found->second.dtype(), found->second.shape()), type))
        return lex_.error("constant @" + digest + " has another type");
      return found->second;
    }
    if (lex_.accept_word("base64")) return base64(type.dtype, dims, count);
    if (!lex_.accept("{")) return lex_.expected("'{', '@' or 'base64'");
    std::vector<double> floats;
    std::vector<int64_t> ints;
    for (int64_t k = 0; !lex_.accept("}"); ++k) {
      if (k > 0 && !lex_.accept(",")) return lex_.expected("',' or '}'");
      if (type.dtype.is_float()) {
        auto value = float_element(type.dtype);
        if (!value) return value.failure();
        floats.push_back(*value);
      } else {
        auto value = number<int64_t>("an int");
        if (!value) return value.failure();
        ints.push_back(*value);
      }
    }
    const auto given = static_cast<int64_t>(floats.size() + ints.size());
    if (given != count)
      return lex_.error("expected " + std::to_string(count) + " elements, got " + std::to_string(given));
    return type.dtype.is_float() ? Constant::from_floats(type.dtype, dims, floats)
                                 : Constant::from_ints(type.dtype, dims, ints);
  }

  Result<Constant> base64(DType dtype, const std::vector<int64_t>& dims, int64_t count) {
    auto text = lex_.string();
    if (!text) return text.failure();
    const auto bytes = base64_decode(*text);
    if (!bytes) return lex_.error("the content is not base64");
    if (static_cast<int64_t>(bytes->size()) / dtype.bytes() != count ||
        static_cast<int64_t>(bytes->size()) % dtype.bytes() != 0)
      return lex_.error("expected " + std::to_string(count) + " elements, got " + std::to_string(bytes->size()) +
                        " bytes");
    Constant result = Constant::allocate(dtype, dims);
    if (!bytes->empty()) std::memcpy(result.mutable_data(), bytes->data(), bytes->size());
    return result;
  }

  /// A list; the word in front of an empty one says of what.
  Result<AttrValue> list(std::string_view word) {
    if (!lex_.accept("[")) return lex_.expected("'['");
    if (lex_.accept("]")) {
      if (word == "ints") return AttrValue(std::vector<int64_t>{});
      if (word == "floats") return AttrValue(std::vector<double>{});
      if (word == "strings") return AttrValue(std::vector<std::string>{});
      return lex_.error("an empty list needs ints, floats or strings in front");
    }
    std::vector<AttrValue> items;
    do {
      auto item = scalar();
      if (!item) return item.failure();
      if (!items.empty() && item->index() != items[0].index())
        return lex_.error("the elements of a list must have one kind");
      items.push_back(std::move(item).value());
    } while (lex_.accept(","));
    if (!lex_.accept("]")) return lex_.expected("',' or ']'");
    return std::visit(
        [&]<typename T>(const T&) -> Result<AttrValue> {
          if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double> || std::is_same_v<T, std::string>) {
            std::vector<T> values;
            for (const AttrValue& item : items) values.push_back(std::get<T>(item));
            return AttrValue(std::move(values));
          } else {
            return lex_.error("lists of this kind do not exist");
          }
        },
        items[0]);
  }

  Result<AttrValue> scalar() {
    if (lex_.peek() == '"') {
      auto text = lex_.string();
      if (!text) return text.failure();
      return AttrValue(*text);
    }
    const std::string_view text = lex_.number();
    if (text.empty()) return lex_.expected("an attribute value");
    const char* const end = text.data() + text.size();
    if (text == "nan") return AttrValue(std::numeric_limits<double>::quiet_NaN());
    if (text.find_first_of(".einf") == std::string_view::npos) {
      int64_t value = 0;
      if (const auto [stop, error] = std::from_chars(text.data(), end, value); error == std::errc() && stop == end)
        return AttrValue(value);
    } else {
      double value = 0;
      if (const auto [stop, error] = std::from_chars(text.data(), end, value); error == std::errc() && stop == end)
        return AttrValue(value);
    }
    return lex_.error("'" + std::string(text) + "' is no number");
  }

  Result<AttrValue> attr() {
    const char next = lex_.peek();
    if (next == '[') return list("");
    if (next == '"' || next == '-' || (next >= '0' && next <= '9')) return scalar();
    Lexer before = lex_;
    const std::string_view word = lex_.identifier();
    if (word == "ints" || word == "floats" || word == "strings") return list(word);
    if (word == "inf" || word == "nan") {
      lex_ = before;
      return scalar();
    }
    if (word == "graph") {
      lex_ = before;
      auto subgraph = Parser(lex_, constants_, dims_, depth_ + 1).run();
      if (!subgraph) return subgraph.failure();
      return AttrValue(std::make_shared<Graph>(std::move(subgraph).value()));
    }
    const auto dtype = parse_dtype(word);
    if (!dtype) return lex_.expected("an attribute value in front of this");
    if (lex_.peek() != '[') return AttrValue(*dtype);
    auto type = shape(*dtype);
    if (!type) return type.failure();
    auto tensor = content(*type);
    if (!tensor) return tensor.failure();
    return AttrValue(std::move(tensor).value());
  }

  Result<AttrMap> attrs() {
    AttrMap map;
    if (!lex_.accept("{")) return map;
    while (!lex_.accept("}")) {
      if (!map.all().empty() && !lex_.accept(",")) return lex_.expected("',' or '}'");
      const std::string name(lex_.identifier());
      if (name.empty()) return lex_.expected("the name of an attribute");
      if (!lex_.accept("=")) return lex_.expected("'='");
      auto value = attr();
      if (!value) return value.failure();
      if (map.has(name)) return lex_.error("attribute " + name + " is given twice");
      map.set(name, std::move(value).value());
    }
    return map;
  }

  Result<std::vector<Value>> arguments() {
    std::vector<Value> values;
    if (!lex_.accept("(")) return lex_.expected("'('");
    for (bool first = true; !lex_.accept(")"); first = false) {
      if (!first && !lex_.accept(",")) return lex_.expected("',' or ')'");
      if (lex_.peek() == '_') {
        lex_.accept("_");
        values.push_back({});
        continue;
      }
      auto name = value_name();
      if (!name) return name.failure();
      const auto found = values_.find(*name);
      if (found == values_.end()) return lex_.error("value %" + *name + " is not defined");
      values.push_back(found->second);
    }
    return values;
  }

  Result<void> define(const std::vector<Target>& targets, const std::vector<Value>& values) {
    for (size_t k = 0; k < targets.size(); ++k) {
      if (!values_.emplace(targets[k].name, values[k]).second)
        return lex_.error("value %" + targets[k].name + " is defined twice");
      if (graph_.value_name(values[k]) != targets[k].name) editor_.set_output_name(values[k], targets[k].name);
    }
    return {};
  }

  Result<void> statement() {
    Lexer start = lex_;  // where errors about the whole statement are
    std::vector<Target> targets;
    do {
      auto name = value_name();
      if (!name) return name.failure();
      targets.push_back({*name, std::nullopt});
      if (!lex_.accept(":")) continue;
      auto annotation = type();
      if (!annotation) return annotation.failure();
      targets.back().type = std::move(annotation).value();
    } while (lex_.accept(","));
    if (!lex_.accept("=")) return lex_.expected("'='");
    Lexer before = lex_;
    const std::string_view first = lex_.identifier();
    const auto node_name = [&]() -> Result<std::string> {
      if (lex_.peek() == '"') return lex_.string();
      return targets[0].name;
    };
    if (targets.size() == 1 && first == "input") {
      if (!targets[0].type) return lex_.error("an input needs a type");
      auto name = node_name();
      if (!name) return name.failure();
      dims_.adopt_pending();
      return define(targets, {editor_.add_input(*name, *targets[0].type)});
    }
    if (targets.size() == 1 && lex_.peek() == '[') {
      lex_ = before;
      auto literal_type = type();
      if (!literal_type) return literal_type.failure();
      auto tensor = content(*literal_type);
      if (!tensor) return tensor.failure();
      auto name = node_name();
      if (!name) return name.failure();
      return define(targets, {editor_.add_constant(std::move(tensor).value(), *name)});
    }
    std::string domain, op_name(first);
    if (lex_.accept("::")) {
      domain = op_name;
      op_name = lex_.identifier();
    }
    const OpDef* op = find_op(op_name, domain);
    if (!op) return lex_.error("no operator '" + op_name + "'" + (domain.empty() ? "" : " in domain " + domain));
    auto inputs = arguments();
    if (!inputs) return inputs.failure();
    auto attributes = attrs();
    if (!attributes) return attributes.failure();
    auto name = node_name();
    if (!name) return name.failure();
    auto added = editor_.try_add(*op, *inputs, std::move(attributes).value(), *name, static_cast<int>(targets.size()));
    if (!added) return start.error(added.failure().message);
    std::vector<Value> values;
    for (size_t k = 0; k < targets.size(); ++k) {
      values.push_back({*added, static_cast<int>(k)});
      const TensorType& inferred = graph_.type(values.back());
      if (!targets[k].type) continue;
      dims_.unify(*targets[k].type, inferred);
      if (!same_type(dims_.resolve(*targets[k].type), inferred))
        return start.error("%" + targets[k].name + ": expected " + to_string(inferred) +
                           " by the operator's rule, got " + to_string(*targets[k].type));
    }
    return define(targets, values);
  }

  Lexer& lex_;
  const ConstantTable& constants_;
  DimScope& dims_;
  int depth_;
  Graph graph_;
  GraphEditor editor_{graph_};
  std::map<std::string, Value> values_;
};

}  // namespace

Result<Graph> parse_graph(std::string_view text, const ConstantTable& constants) {
  Lexer lexer(text);
  DimScope dims;
  try {
    auto graph = Parser(lexer, constants, dims, 0).run();
    if (graph && !lexer.at_end()) return lexer.expected("the end");
    return graph;
  } catch (const InternalError&) {
    throw;
  } catch (const Error& error) {
    return lexer.error(error.message());
  }
}

Result<Graph> parse_graph(std::string_view text) { return parse_graph(text, {}); }

}  // namespace tensmith::graph
