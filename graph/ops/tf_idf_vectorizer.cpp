#include <algorithm>

#include "graph/ops/arith.h"
#include "graph/ops/injective.h"
#include "graph/ops/op_list.h"
#include "graph/ops/sample.h"

namespace tensmith::graph::ops {

namespace {

/// The n-grams of the attributes by output column; columns without one have length 0.
struct Pool {
  int64_t columns = 0, longest = 1;
  std::vector<int64_t> items;    // [columns, longest], padded with 0
  std::vector<int64_t> lengths;  // [columns]
  std::vector<double> weights;   // [columns]
};

/// Errors: `bad-attribute` for attributes that contradict each other, `unsupported-dtype` for strings.
Result<Pool> read_pool(const AttrMap& attrs) {
  if (!attrs.get_strings("pool_strings").empty())
    return refuse("unsupported-dtype") << "attribute pool_strings: expected pool_int64s, got strings; number the "
                                          "words in front of the model";
  const std::vector<int64_t> items = attrs.get_ints("pool_int64s"), starts = attrs.get_ints("ngram_counts"),
                             columns = attrs.get_ints("ngram_indexes");
  const std::vector<double> weights = attrs.get_floats("weights");
  const int64_t shortest = attrs.get_int("min_gram_length", 1), longest = attrs.get_int("max_gram_length", 1);
  if (shortest < 1 || longest < shortest || longest > 64 || static_cast<int64_t>(starts.size()) < longest)
    return refuse("bad-attribute") << "attributes min_gram_length, max_gram_length, ngram_counts: expected 1 <= min "
                                      "<= max <= the number of counts, got "
                                   << shortest << ", " << longest << " and " << starts.size();
  if (!weights.empty() && weights.size() != columns.size())
    return refuse("bad-attribute") << "attribute weights: expected one for each of " << columns.size()
                                   << " n-grams, got " << weights.size();
  Pool pool;
  pool.longest = longest;
  for (int64_t column : columns) {
    if (column < 0 || column > (1 << 24))
      return refuse("bad-attribute") << "attribute ngram_indexes: expected columns of 0 or more, got " << column;
    pool.columns = std::max(pool.columns, column + 1);
  }
  pool.items.assign(static_cast<size_t>(pool.columns * longest), 0);
  pool.lengths.assign(static_cast<size_t>(pool.columns), 0);
  pool.weights.assign(static_cast<size_t>(pool.columns), 1);
  size_t gram = 0;
  for (size_t n = 1; n <= starts.size(); ++n) {
    const int64_t begin = starts[n - 1], end = n < starts.size() ? starts[n] : static_cast<int64_t>(items.size());
    if (begin < 0 || end < begin || end > static_cast<int64_t>(items.size()) ||
        (end - begin) % static_cast<int64_t>(n) != 0)
      return refuse("bad-attribute") << "attribute ngram_counts: expected whole " << n << "-grams between " << begin
                                     << " and " << end << " of a pool of " << items.size();
    for (int64_t at = begin; at < end; at += static_cast<int64_t>(n), ++gram) {
      if (gram >= columns.size())
        return refuse("bad-attribute") << "attribute ngram_indexes: expected one for each n-gram, got "
                                       << columns.size();
      const auto length = static_cast<int64_t>(n), column = columns[gram];
      if (length < shortest || length > longest) continue;
      if (pool.lengths[column] != 0)
        return refuse("bad-attribute") << "attribute ngram_indexes: expected each column once, got " << column
                                       << " twice";
      pool.lengths[column] = length;
      if (!weights.empty()) pool.weights[column] = weights[gram];
      std::copy_n(items.begin() + at, length, pool.items.begin() + column * longest);
    }
  }
  return pool;
}

Result<std::vector<TensorType>> infer_tf_idf(const InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  if (Result<void> ok = check_rank(x, 1, 2, "input X"); !ok) return ok.failure();
  const Result<Pool> pool = read_pool(ctx.node.attrs);
  if (!pool) return pool.failure();
  if (const int64_t skips = ctx.node.attrs.get_int("max_skip_count", 0); skips < 0 || skips > 4096)
    return refuse("bad-attribute") << "attribute max_skip_count: expected 0 to 4096, got " << skips;
  Shape shape(x.shape.begin(), x.shape.end() - 1);
  shape.emplace_back(pool->columns);
  return std::vector<TensorType>{{kFloat32, shape, {}}};
}

/// Matches of the n-gram of each column. Inputs: X [..., C], items [columns, longest], lengths [columns].
std::vector<Tensor> compute_counts(const ComputeContext& ctx) {
  const Tensor &x = ctx.input(0), &items = ctx.input(1), &lengths = ctx.input(2);
  const int64_t longest = *known(items.shape()[1]), skips = ctx.node.attrs.get_int("max_skip_count", 0);
  const Expr extent = x.shape().back();
  const auto body = [&](const Indices& i, const Indices& r) {
    Expr all = make_bool(true);
    for (int64_t k = 0; k < longest; ++k) {
      Indices at(i.begin(), i.end() - 1);
      at.push_back(min(r[1] + (r[0] + 1) * k, extent - 1));
      all = all && (lengths(i.back()) <= k || cast(kInt64, x(at)) == items(i.back(), k));
    }
    return cast(kFloat32, all);
  };
  const auto where = [&](const Indices& i, const Indices& r) {
    const Expr length = lengths(i.back());
    // Skips make no difference to a single item, which is counted once.
    return length > 0 && r[1] + (length - 1) * (r[0] + 1) < extent && (r[0] == 0 || length > 1);
  };
  return {
      reduce("ngram_counts", ctx.output_type().shape, {Expr(skips + 1), extent}, sum_reducer(kFloat32), body, where)};
}

void count(const RefTensor& x, int64_t columns, int64_t longest, const std::vector<int64_t>& items,
           const std::vector<int64_t>& lengths, int64_t skips, RefTensor& y) {
  const int64_t extent = x.shape.back(), rows = count_of(x.shape, 0, x.shape.size() - 1);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      for (int64_t stride = 1; lengths[column] > 0 && stride <= (lengths[column] == 1 ? 1 : skips + 1); ++stride)
        for (int64_t start = 0; start + (lengths[column] - 1) * stride < extent; ++start) {
          bool matches = true;
          for (int64_t k = 0; k < lengths[column]; ++k)
            matches = matches && x.i[row * extent + start + k * stride] == items[column * longest + k];
          y.f[row * columns + column] += matches;
        }
}

RefTensor& make_rows(ReferenceContext& ctx, int64_t columns) {
  Dims shape(ctx.input(0).shape.begin(), ctx.input(0).shape.end() - 1);
  shape.push_back(columns);
  return make_output(ctx, kFloat32, std::move(shape));
}

Result<void> reference_tf_idf(ReferenceContext& ctx) {
  const Result<Pool> pool = read_pool(ctx.node.attrs);
  if (!pool) return pool.failure();
  RefTensor& y = make_rows(ctx, pool->columns);
  count(ctx.input(0), pool->columns, pool->longest, pool->items, pool->lengths,
        ctx.node.attrs.get_int("max_skip_count", 0), y);
  const std::string mode = ctx.node.attrs.get_string("mode", "TF");
  for (size_t k = 0; k < y.f.size(); ++k) {
    if (mode == "IDF") y.f[k] = std::min(y.f[k], 1.0);
    if (mode != "TF") y.f[k] *= pool->weights[k % static_cast<size_t>(pool->columns)];
  }
  return {};
}

/// The counts, cut to 1 and weighted as the mode says.
std::vector<Value> decompose_tf_idf(GraphEditor& edit, const Node& node) {
  const Pool pool = read_pool(node.attrs).value();
  const std::string mode = node.attrs.get_string("mode", "TF"), name = node.name;
  const int64_t skips = node.attrs.get_int("max_skip_count", 0);
  const Value x = node.inputs[0];
  const auto constant = [&](Constant value, const char* what) {
    return edit.add_constant(std::move(value), name + "." + what);
  };
  const Value items = constant(Constant::from_ints(kInt64, {pool.columns, pool.longest}, pool.items), "items");
  const Value lengths = constant(Constant::from_ints(kInt64, {pool.columns}, pool.lengths), "lengths");
  AttrMap attrs;
  attrs.set("max_skip_count", skips);
  Value result{edit.add(*find_op("NGramCounts", "tensmith"), {x, items, lengths}, std::move(attrs), name + ".counts"),
               0};
  if (mode == "IDF") {
    const Value one = constant(Constant::from_floats(kFloat32, {}, std::vector<double>{1}), "one");
    result = {edit.add("Min", {result, one}, {}, name + ".seen"), 0};
  }
  if (mode != "TF") {
    const Value weights = constant(Constant::from_floats(kFloat32, {pool.columns}, pool.weights), "weights");
    result = {edit.add("Mul", {result, weights}, {}, name + ".weighted"), 0};
  }
  return {result};
}

}  // namespace

/// TfIdfVectorizer, and the internal operator that counts.
std::vector<OpDef> tf_idf_vectorizer() {
  const auto with = [](const char* mode, int skips, int shortest, int longest) {
    AttrMap map =
        attrs({{"mode", mode}, {"max_skip_count", skips}, {"min_gram_length", shortest}, {"max_gram_length", longest}});
    map.set("ngram_counts", std::vector<int64_t>{0, 4});
    map.set("ngram_indexes", std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6});
    map.set("pool_int64s", std::vector<int64_t>{2, 3, 5, 4, 5, 6, 7, 8, 6, 7});
    map.set("weights", std::vector<double>{1, 2, 3, 4, 0.5, 0.25, 2});
    return map;
  };
  const auto words = given(kInt32, {2, 6}, {1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8});
  std::vector<OpDef> list;
  list.push_back(OpDef{
      .name = "NGramCounts",
      .domain = "tensmith",
      .doc = "How often the n-gram of each column occurs in each row, its items next to each other or a fixed distance "
             "apart.",
      .inputs = {{.name = "X", .types = TypeSet::kIndex},
                 {.name = "items", .types = TypeSet::kInt64},
                 {.name = "lengths", .types = TypeSet::kInt64}},
      .attrs = {{.name = "max_skip_count", .kind = AttrKind::kInt, .default_value = int64_t{0}}},
      .fusion = FusionKind::kReduction,
      .infer = [](const InferContext& ctx) -> Result<std::vector<TensorType>> {
        const TensorType &x = ctx.input(0), &items = ctx.input(1);
        if (Result<void> ok = check_rank(x, 1, 2, "input X"); !ok) return ok.failure();
        if (Result<void> ok = check_rank(items, 2, 2, "input items"); !ok) return ok.failure();
        if (!known(items.shape[1]))
          return refuse("dynamic-shape") << "input items: expected a known length, got shape "
                                         << shape_text(items.shape);
        if (Result<void> ok = check_shape(ctx.input(2), {items.shape[0]}, "input lengths"); !ok) return ok.failure();
        Shape shape(x.shape.begin(), x.shape.end() - 1);
        shape.push_back(items.shape[0]);
        return std::vector<TensorType>{{kFloat32, shape, {}}};
      },
      .compute = compute_counts,
      .reference = [](ReferenceContext& ctx) -> Result<void> {
        const Dims& shape = ctx.input(1).shape;
        count(ctx.input(0), shape[0], shape[1], ctx.input(1).i, ctx.input(2).i,
              ctx.node.attrs.get_int("max_skip_count", 0), make_rows(ctx, shape[0]));
        return {};
      },
      .samples =
          {
              {.name = "pairs",
               .inputs = {words, given(kInt64, {4, 2}, {3, 0, 3, 3, 6, 7, 9, 9}), given(kInt64, {4}, {1, 2, 2, 0})},
               .attrs = attrs({{"max_skip_count", 2}})},
              {.name = "row",
               .inputs = {given(kInt64, {5}, {1, 2, 1, 2, 1}), given(kInt64, {1, 3}, {1, 2, 1}),
                          given(kInt64, {1}, {3})}},
              {.name = "wrong_lengths",
               .inputs = {words, in(kInt64, {4, 2}), in(kInt64, {3})},
               .error_id = "shape-mismatch"},
          },
  });
  list.push_back(OpDef{
      .name = "TfIdfVectorizer",
      .since = 9,
      .doc = "Counts of known n-grams of integers in each row, as they are or weighted.",
      .inputs = {{.name = "X", .types = TypeSet::kIndex}},
      .attrs = {{.name = "max_gram_length", .kind = AttrKind::kInt, .required = true},
                {.name = "max_skip_count", .kind = AttrKind::kInt, .required = true},
                {.name = "min_gram_length", .kind = AttrKind::kInt, .required = true},
                {.name = "mode",
                 .kind = AttrKind::kString,
                 .required = true,
                 .default_value = std::string("TF"),
                 .allowed = {"TF", "IDF", "TFIDF"}},
                {.name = "ngram_counts", .kind = AttrKind::kInts, .required = true},
                {.name = "ngram_indexes", .kind = AttrKind::kInts, .required = true},
                {.name = "pool_int64s", .kind = AttrKind::kInts, .no_default = true},
                {.name = "pool_strings", .kind = AttrKind::kStrings, .no_default = true},
                {.name = "weights", .kind = AttrKind::kFloats, .no_default = true}},
      .fusion = FusionKind::kOpaque,
      .infer = infer_tf_idf,
      .decompose = decompose_tf_idf,
      .reference = reference_tf_idf,
      .samples =
          {
              {.name = "counts", .inputs = {words}, .attrs = with("TF", 1, 1, 2)},
              {.name = "weighted", .inputs = {words}, .attrs = with("TFIDF", 5, 2, 2)},
              {.name = "backwards", .inputs = {words}, .attrs = with("TF", 0, 2, 1), .error_id = "bad-attribute"},
          },
  });
  return list;
}

}  // namespace tensmith::graph::ops
