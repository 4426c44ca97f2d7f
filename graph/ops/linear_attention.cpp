#include <cmath>

#include "graph/ops/arith.h"
#include "graph/ops/loop_builder.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

enum Input { kQuery, kKey, kValue, kPast, kDecay, kBeta };

/// The attributes and sizes, resolved.
struct LinearHeads {
  int64_t query_heads = 0, heads = 0;  ///< heads of the state; several query heads may share one
  int64_t d_k = 0, d_v = 0;
  bool gated = false, delta = false;
  int64_t decays = 1, betas = 1;  ///< per head of the state: decay factors; in all: betas
  double scale = 1;
};

Result<LinearHeads> resolve(const AttrMap& attrs, const Shape& query, const Shape& value, const Shape* decay,
                            const Shape* beta) {
  LinearHeads h;
  h.query_heads = attrs.get_int("q_num_heads", 0);
  h.heads = attrs.get_int("kv_num_heads", 0);
  if (h.heads < 1 || h.query_heads < 1 || h.query_heads % h.heads != 0)
    return refuse("bad-attribute")
           << "attributes q_num_heads, kv_num_heads: expected a positive multiple and a positive "
              "number, got "
           << h.query_heads << " and " << h.heads;
  const std::string rule = attrs.get_string("update_rule", "gated_delta");
  h.gated = rule == "gated" || rule == "gated_delta";
  h.delta = rule == "delta" || rule == "gated_delta";
  if (h.gated != (decay != nullptr) || h.delta != (beta != nullptr))
    return refuse("bad-arity") << "inputs decay, beta: expected those that update_rule " << rule
                               << " needs, got others";
  // Columns of an input, which heads are cut from.
  const auto width = [](const Shape* shape, const char* name) -> Result<int64_t> {
    if (shape->size() != 3)
      return refuse("rank-mismatch") << "input " << name << ": expected [batch, steps, columns], got "
                                     << shape_text(*shape);
    if (const auto columns = known(shape->back())) return *columns;
    return refuse("dynamic-shape") << "input " << name << ": expected a fixed number of columns, got "
                                   << shape_text(*shape);
  };
  const Result<int64_t> columns = width(&query, "query"), values = width(&value, "value");
  if (!columns) return columns.failure();
  if (!values) return values.failure();
  if (*columns % h.query_heads != 0 || *values % h.heads != 0)
    return refuse("shape-mismatch") << "inputs query, value: expected a last dim that the heads divide, got "
                                    << shape_text(query) << " and " << shape_text(value);
  h.d_k = *columns / h.query_heads;
  h.d_v = *values / h.heads;
  if (decay) {
    const Result<int64_t> given = width(decay, "decay");
    if (!given) return given.failure();
    if (*given != h.heads && *given != h.heads * h.d_k)
      return refuse("shape-mismatch") << "input decay: expected " << h.heads << " or " << h.heads * h.d_k
                                      << " columns, got " << shape_text(*decay);
    h.decays = *given / h.heads;
  }
  if (beta) {
    const Result<int64_t> given = width(beta, "beta");
    if (!given) return given.failure();
    if (*given != h.heads && *given != 1)
      return refuse("shape-mismatch") << "input beta: expected " << h.heads << " columns or one, got "
                                      << shape_text(*beta);
    h.betas = *given;
  }
  h.scale = attrs.get_float("scale", 0);
  if (h.scale == 0) h.scale = 1 / std::sqrt(static_cast<double>(h.d_k));
  return h;
}

Result<LinearHeads> resolve(const InferContext& ctx) {
  return resolve(ctx.node.attrs, ctx.input(kQuery).shape, ctx.input(kValue).shape,
                 ctx.has(kDecay) ? &ctx.input(kDecay).shape : nullptr,
                 ctx.has(kBeta) ? &ctx.input(kBeta).shape : nullptr);
}

Result<std::vector<TensorType>> infer(const InferContext& ctx) {
  const TensorType& q = ctx.input(kQuery);
  if (Result<void> ok = check_rank(q, 3, 3, "input query"); !ok) return ok.failure();
  const Result<LinearHeads> heads = resolve(ctx);
  if (!heads) return heads.failure();
  const LinearHeads& h = *heads;
  const Expr batch = q.shape[0], steps = q.shape[1];
  const Shape state{batch, Expr(h.heads), Expr(h.d_k), Expr(h.d_v)};
  const std::pair<int, Shape> wanted[] = {{kKey, {batch, steps, Expr(h.heads * h.d_k)}},
                                          {kValue, {batch, steps, Expr(h.heads * h.d_v)}},
                                          {kPast, state},
                                          {kDecay, {batch, steps, Expr(h.heads * h.decays)}},
                                          {kBeta, {batch, steps, Expr(h.betas)}}};
  for (const auto& [input, shape] : wanted)
    if (ctx.has(input))
      if (Result<void> ok =
              check_shape(ctx.input(input), shape, std::string("input ") + ctx.node.op->inputs[input].name);
          !ok)
        return ok.failure();
  const DType state_type = ctx.has(kPast) ? ctx.input(kPast).dtype : q.dtype;
  return std::vector<TensorType>{{q.dtype, {batch, steps, Expr(h.query_heads * h.d_v)}, {}}, {state_type, state, {}}};
}

/// The steps of one head of one sequence after another; the state stays in one buffer of rows of d_v elements.
class LinearSteps {
 public:
  LinearSteps(const ComputeContext& ctx, const std::vector<Buffer>& outputs)
      : ctx_(ctx),
        outputs_(outputs),
        h_(resolve(ctx.node.attrs, ctx.input(kQuery).shape(), ctx.input(kValue).shape(), shape_of(kDecay),
                   shape_of(kBeta))
               .value()),
        wide_(compute_type(ctx.input(kQuery).dtype())),
        batch_(ctx.input(kQuery).shape()[0]),
        steps_(ctx.input(kQuery).shape()[1]),
        state_(make_buffer("state", wide_, {batch_, Expr(h_.heads), Expr(h_.d_k), Expr(h_.d_v)})),
        row_(make_buffer("row", wide_, {batch_, Expr(h_.heads), Expr(h_.d_v)})) {}

  Stmt all() const {
    return with_buffers(
        {state_, row_},
        loop_nest(
            {batch_, Expr(h_.heads)}, [&](const Indices& i) { return sequence(i[0], i[1]); }, ForKind::kParallel));
  }

 private:
  const Shape* shape_of(int input) const { return ctx_.has(input) ? &ctx_.input(input).shape() : nullptr; }
  Expr element(int input, const Expr& b, const Expr& t, const Expr& column) const {
    return cast(wide_, widen(ctx_.input(input)(b, t, column)));
  }
  Stmt each_value(const std::function<Stmt(const Expr& m)>& body) const {
    return vector_nest({Expr(h_.d_v)}, [&](const Indices& i) { return body(i[0]); });
  }
  /// `body` for each row of the state, with a factor that is evaluated once.
  Stmt each_key(const std::function<Expr(const Expr& d)>& factor,
                const std::function<Stmt(const Expr& d, const Expr& f)>& body) const {
    return loop("d", h_.d_k, [&](const Expr& d) {
      const Var f("f", wide_);
      return LetStmt::make(f, factor(d), body(d, f));
    });
  }

  Stmt sequence(const Expr& b, const Expr& h) const {
    const Stmt start = loop("d", h_.d_k, [&](const Expr& d) {
      return each_value([&](const Expr& m) {
        return Store::make(state_, {b, h, d, m},
                           ctx_.has(kPast) ? cast(wide_, widen(ctx_.input(kPast)(b, h, d, m))) : make_zero(wide_));
      });
    });
    const Stmt steps = loop("t", steps_, [&](const Expr& t) { return step(b, h, t); });
    if (outputs_.size() < 2) return Block::make({start, steps});
    return Block::make(
        {start, steps, loop("d", h_.d_k, [&](const Expr& d) {
           return each_value([&](const Expr& m) {
             return Store::make(outputs_[1], {b, h, d, m}, cast(outputs_[1]->dtype, load(state_, {b, h, d, m})));
           });
         })});
  }

  Stmt step(const Expr& b, const Expr& h, const Expr& t) const {
    const auto key = [&](const Expr& d) { return element(kKey, b, t, h * h_.d_k + d); };
    std::vector<Stmt> parts;
    if (h_.gated) {
      const auto decay = [&](const Expr& d) {
        return call(Intrinsic::kExp, {element(kDecay, b, t, h_.decays == 1 ? h : h * h_.d_k + d)});
      };
      parts.push_back(each_key(decay, [&](const Expr& d, const Expr& f) {
        return each_value([&](const Expr& m) {
          return Store::make(state_, {b, h, d, m}, load(state_, {b, h, d, m}) * f);
        });
      }));
    }
    const auto value = [&](const Expr& m) { return element(kValue, b, t, h * h_.d_v + m); };
    if (h_.delta) {
      // What the state holds for this key already, then the part of the value that it lacks.
      parts.push_back(zero_row(b, h));
      parts.push_back(add_rows(b, h, key));
      const Var beta("beta", wide_);
      parts.push_back(
          LetStmt::make(beta, element(kBeta, b, t, h_.betas == 1 ? Expr(0) : h), each_value([&](const Expr& m) {
                          return Store::make(row_, {b, h, m}, Expr(beta) * (value(m) - load(row_, {b, h, m})));
                        })));
    } else {
      parts.push_back(each_value([&](const Expr& m) { return Store::make(row_, {b, h, m}, value(m)); }));
    }
    parts.push_back(each_key(key, [&](const Expr& d, const Expr& f) {
      return each_value([&](const Expr& m) {
        return Store::make(state_, {b, h, d, m}, load(state_, {b, h, d, m}) + f * load(row_, {b, h, m}));
      });
    }));
    parts.push_back(loop("g", h_.query_heads / h_.heads, [&](const Expr& g) {
      const Expr q_head = h * (h_.query_heads / h_.heads) + g;
      return Block::make(
          {zero_row(b, h), add_rows(b, h, [&](const Expr& d) { return element(kQuery, b, t, q_head * h_.d_k + d); }),
           each_value([&](const Expr& m) {
             return Store::make(outputs_[0], {b, t, q_head * h_.d_v + m},
                                cast(outputs_[0]->dtype, load(row_, {b, h, m}) * make_const(wide_, h_.scale)));
           })});
    }));
    return Block::make(parts);
  }

  Stmt zero_row(const Expr& b, const Expr& h) const {
    return each_value([&](const Expr& m) { return Store::make(row_, {b, h, m}, make_zero(wide_)); });
  }
  /// row += sum over d of factor(d) state[d].
  Stmt add_rows(const Expr& b, const Expr& h, const std::function<Expr(const Expr& d)>& factor) const {
    return each_key(factor, [&](const Expr& d, const Expr& f) {
      return each_value([&](const Expr& m) {
        return Store::make(row_, {b, h, m}, load(row_, {b, h, m}) + f * load(state_, {b, h, d, m}));
      });
    });
  }

  const ComputeContext& ctx_;
  const std::vector<Buffer>& outputs_;
  const LinearHeads h_;
  const DType wide_;
  const Expr batch_, steps_;
  const Buffer state_, row_;
};

std::vector<Tensor> compute_linear_attention(const ComputeContext& ctx) {
  std::vector<Shape> shapes;
  std::vector<DType> dtypes;
  for (const TensorType& type : ctx.node.types) {
    shapes.push_back(type.shape);
    dtypes.push_back(type.dtype);
  }
  std::vector<Tensor> given;
  for (const Tensor& input : ctx.inputs)
    if (input) given.push_back(input);
  return imperative("linear_attention", given, shapes, dtypes,
                    [&](const std::vector<Buffer>& outputs) { return LinearSteps(ctx, outputs).all(); });
}

Result<void> reference(ReferenceContext& ctx) {
  const RefTensor &q = ctx.input(kQuery), &k = ctx.input(kKey), &v = ctx.input(kValue);
  const auto shape_of = [&](int input) {
    return ctx.has(input) ? std::optional(to_shape(ctx.input(input).shape)) : std::nullopt;
  };
  const std::optional<Shape> decay = shape_of(kDecay), beta = shape_of(kBeta);
  const Result<LinearHeads> heads =
      resolve(ctx.node.attrs, to_shape(q.shape), to_shape(v.shape), decay ? &*decay : nullptr, beta ? &*beta : nullptr);
  if (!heads) return heads.failure();
  const LinearHeads& h = *heads;
  const int64_t steps = q.shape[1], group = h.query_heads / h.heads;
  for (int64_t b = 0; b < q.shape[0]; ++b)
    for (int64_t n = 0; n < h.heads; ++n) {
      std::vector<double> state(static_cast<size_t>(h.d_k * h.d_v), 0.0);
      const int64_t first = (b * h.heads + n) * h.d_k * h.d_v;
      if (ctx.has(kPast)) std::copy_n(ctx.input(kPast).f.begin() + first, state.size(), state.begin());
      for (int64_t t = 0; t < steps; ++t) {
        const int64_t at = b * steps + t;
        const double* key = &k.f[(at * h.heads + n) * h.d_k];
        for (int64_t d = 0; h.gated && d < h.d_k; ++d) {
          const int64_t gate = (at * h.heads + n) * h.decays + (h.decays == 1 ? 0 : d);
          for (int64_t m = 0; m < h.d_v; ++m) state[d * h.d_v + m] *= std::exp(ctx.input(kDecay).f[gate]);
        }
        for (int64_t m = 0; m < h.d_v; ++m) {
          double value = v.f[(at * h.heads + n) * h.d_v + m];
          if (h.delta) {
            double held = 0;
            for (int64_t d = 0; d < h.d_k; ++d) held += key[d] * state[d * h.d_v + m];
            value = ctx.input(kBeta).f[at * h.betas + (h.betas == 1 ? 0 : n)] * (value - held);
          }
          for (int64_t d = 0; d < h.d_k; ++d) state[d * h.d_v + m] += key[d] * value;
        }
        for (int64_t g = n * group; g < (n + 1) * group; ++g)
          for (int64_t m = 0; m < h.d_v; ++m) {
            double total = 0;
            for (int64_t d = 0; d < h.d_k; ++d)
              total += q.f[(at * h.query_heads + g) * h.d_k + d] * state[d * h.d_v + m];
            ctx.output().f[(at * h.query_heads + g) * h.d_v + m] = total * h.scale;
          }
      }
      if (ctx.outputs.size() > 1) std::copy(state.begin(), state.end(), ctx.output(1).f.begin() + first);
    }
  return {};
}

std::vector<OpSample> samples() {
  const auto rule = [](const char* name, int64_t query_heads, int64_t heads) {
    return attrs({{"update_rule", name}, {"q_num_heads", AttrValue(query_heads)}, {"kv_num_heads", AttrValue(heads)}});
  };
  const OpSample::Input q = f32({2, 5, 12}), k = f32({2, 5, 6}, -1, 1), v = f32({2, 5, 10});
  return {
      {.name = "linear",
       .inputs = {f32({1, 3, 8}), f32({1, 3, 8}), f32({1, 3, 4})},
       .attrs = rule("linear", 2, 2),
       .num_outputs = 2},
      {.name = "gated_by_head",
       .inputs = {q, k, v, f32({2, 2, 3, 5}), f32({2, 5, 2}, -1, 0)},
       .attrs = rule("gated", 4, 2),
       .num_outputs = 2},
      {.name = "gated_by_key",
       .inputs = {q, k, v, absent(), f32({2, 5, 6}, -1, 0)},
       .attrs = rule("gated", 4, 2),
       .num_outputs = 2},
      {.name = "delta",
       .inputs = {q, k, v, f32({2, 2, 3, 5}), absent(), f32({2, 5, 1}, 0, 1)},
       .attrs = rule("delta", 4, 2),
       .num_outputs = 2},
      {.name = "gated_delta",
       .inputs = {f32({1, 4, 6}), f32({1, 4, 3}, -1, 1), f32({1, 4, 37}), absent(), f32({1, 4, 1}, -1, 0),
                  f32({1, 4, 1}, 0, 1)},
       .attrs = rule("gated_delta", 2, 1)},
      {.name = "decay_is_missing", .inputs = {q, k, v}, .attrs = rule("gated", 4, 2), .error_id = "bad-arity"},
      {.name = "heads_do_not_divide", .inputs = {q, k, v}, .attrs = rule("linear", 3, 2), .error_id = "bad-attribute"},
      {.name = "keys_differ",
       .inputs = {q, f32({2, 5, 8}), v},
       .attrs = rule("linear", 4, 2),
       .error_id = "shape-mismatch"},
  };
}

}  // namespace

OpDef linear_attention() {
  const auto like_query = [](const char* name, bool optional) {
    return InputSpec{.name = name, .types = TypeSet::kFloat, .optional = optional, .same_type_as = "query"};
  };
  return OpDef{
      .name = "LinearAttention",
      .since = 27,
      .doc =
          "Attention through a state that each step decays and adds the product of key and value to (or, by the delta "
          "rule, of key and the part of the value that the state lacks), read by the query.",
      .inputs = {{.name = "query", .types = TypeSet::kFloat},
                 like_query("key", false),
                 like_query("value", false),
                 {.name = "past_state", .types = TypeSet::kFloat, .optional = true},
                 like_query("decay", true),
                 like_query("beta", true)},
      .attrs = {{.name = "chunk_size", .kind = AttrKind::kInt, .default_value = int64_t{64}},
                {.name = "kv_num_heads", .kind = AttrKind::kInt, .required = true},
                {.name = "q_num_heads", .kind = AttrKind::kInt, .required = true},
                {.name = "scale", .kind = AttrKind::kFloat, .default_value = 0.0},
                {.name = "update_rule",
                 .kind = AttrKind::kString,
                 .default_value = std::string("gated_delta"),
                 .allowed = {"linear", "gated", "delta", "gated_delta"}}},
      .min_outputs = 1,
      .max_outputs = 2,
      .infer = infer,
      .compute = compute_linear_attention,
      .reference = reference,
      .flops =
          [](const InferContext& ctx) {
            const auto heads = resolve(ctx);
            const auto steps = known(ctx.input(kQuery).shape[0] * ctx.input(kQuery).shape[1]);
            if (!heads || !steps) return 0.0;
            const LinearHeads& h = *heads;
            const double state = static_cast<double>(h.d_k * h.d_v), turns = static_cast<double>(*steps);
            return turns * state * static_cast<double>(2 * h.query_heads + (2 + h.gated + 2 * h.delta) * h.heads);
          },
      .samples = samples(),
  };
}

}  // namespace tensmith::graph::ops
