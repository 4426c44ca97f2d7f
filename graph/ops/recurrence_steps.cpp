#include "graph/ops/arith.h"
#include "graph/ops/loop_builder.h"
#include "graph/ops/recurrence.h"

namespace tensmith::graph::ops {

namespace {

using enum Recurrence::Input;

class Steps {
 public:
  Steps(const ComputeContext& ctx, RecurrentLayer layer, const std::vector<Buffer>& outputs)
      : ctx_(ctx),
        layer_(std::move(layer)),
        outputs_(outputs),
        dtype_(ctx.input(kInputs).dtype()),
        wide_(compute_type(dtype_)),
        steps_(ctx.input(kInputs).shape()[0]),
        batch_(ctx.input(kInputs).shape()[1]),
        hidden_(layer_.hidden) {
    const auto state = [&](const char* name, int64_t columns) {
      return make_buffer(name, wide_, {Expr(layer_.directions), batch_, Expr(columns)});
    };
    h_ = state("h", hidden_);
    c_ = state("c", hidden_);
    sums_ = state("sums", layer_.gates() * hidden_);
    reset_ = state("reset_h", hidden_);
  }

  Stmt all() const {
    // Rows that run together share each weight that is loaded. With lengths of their own they would be at different
    // steps.
    const int64_t together = ctx_.has(kLengths) ? 1 : kRowsTogether;
    std::vector<Stmt> directions;
    for (int d = 0; d < layer_.directions; ++d) {
      const auto rows = [&](int64_t count, const Expr& start, const Expr& turns) {
        if (is_const_int(turns, 0)) return Stmt();
        return loop(
            "b", turns, [&](const Expr& b) { return sequences(d, start + b * count, count); }, ForKind::kParallel);
      };
      const Expr blocks = floor_div(batch_, together), rest = floor_mod(batch_, together);
      directions.push_back(
          Block::make({rows(together, 0, blocks), together > 1 ? rows(1, batch_ - rest, rest) : Stmt()}));
    }
    std::vector<Buffer> buffers{h_, sums_};
    if (layer_.kind == CellKind::kLstm) buffers.push_back(c_);
    if (layer_.kind == CellKind::kGru && !layer_.linear_before_reset) buffers.push_back(reset_);
    return with_buffers(buffers, Block::make(directions));
  }

 private:
  /// Rows of the batch and columns of a register tile: four vectors of 16 in either form, so that it fits 16 registers
  /// of 8.
  static constexpr int64_t kRowsTogether = 4, kLanes = 16;

  Expr zero() const { return make_zero(wide_); }
  Expr clipped(const Expr& x) const {
    return layer_.clip > 0 ? max(min(x, constant_like(x, layer_.clip)), constant_like(x, -layer_.clip)) : x;
  }
  Expr f(int d, int n, const Expr& x) const { return apply(layer_.activation(d, n), clipped(x)); }
  Expr initial(int input, const Expr& d, const Expr& b, const Expr& j) const {
    return ctx_.has(input) ? widen(ctx_.input(input)(d, b, j)) : zero();
  }

  /// All steps of `rows` sequences from `b` on.
  Stmt sequences(int d, const Expr& b, int64_t rows) const {
    const bool lstm = layer_.kind == CellKind::kLstm;
    const Stmt start = for_each_unit(b, rows, [&](const Expr& row, const Expr& j) {
      Stmt set_state = Store::make(h_, {d, row, j}, initial(kInitialH, d, row, j));
      if (lstm) set_state = Block::make({set_state, Store::make(c_, {d, row, j}, initial(kInitialC, d, row, j))});
      return set_state;
    });
    const Expr length = ctx_.has(kLengths) ? max(min(cast(kInt64, ctx_.input(kLengths)(b)), steps_), 0) : steps_;
    const Var count("count");
    const Stmt run = loop(
        "s", count, [&](const Expr& s) { return step(d, b, rows, layer_.is_backward(d) ? Expr(count) - 1 - s : s); });
    const Stmt rest = loop("s", steps_ - count, [&](const Expr& s) {
      return for_each_unit(b, rows, [&](const Expr& row, const Expr& j) {
        return Store::make(outputs_[0], {Expr(count) + s, d, row, j}, make_zero(dtype_));
      });
    });
    const Stmt finish = for_each_unit(b, rows, [&](const Expr& row, const Expr& j) {
      Stmt store = Store::make(outputs_[1], {d, row, j}, cast(dtype_, load(h_, {d, row, j})));
      if (lstm)
        store = Block::make({store, Store::make(outputs_[2], {d, row, j}, cast(dtype_, load(c_, {d, row, j})))});
      return store;
    });
    return LetStmt::make(count, length, Block::make({start, run, ctx_.has(kLengths) ? rest : Stmt(), finish}));
  }

  Stmt for_each_unit(const Expr& b, int64_t rows,
                     const std::function<Stmt(const Expr& row, const Expr& j)>& body) const {
    return loop("r", rows, [&](const Expr& r) {
      return vector_nest({Expr(hidden_)}, [&](const Indices& i) { return body(b + r, i[0]); });
    });
  }

  /// sums[first ... last) = base(row, column) + vector . recurrent weights, in tiles of rows by columns in registers.
  Stmt products(int d, const Expr& b, int64_t rows, int64_t first, int64_t last, const Buffer& vector,
                const std::function<Expr(const Expr& row, const Expr& column)>& base) const {
    std::vector<Stmt> tiles;
    for (const int64_t width : {rows == 1 ? 4 * kLanes : kLanes, kLanes, int64_t{1}}) {
      const int64_t count = (last - first) / width;
      if (count == 0) continue;
      tiles.push_back(loop("tile", count, [&](const Expr& tile) {
        return product_tile(d, b, rows, tile * width + first, width, vector, base);
      }));
      first += count * width;
    }
    return Block::make(tiles);
  }

  Stmt product_tile(int d, const Expr& b, int64_t rows, const Expr& start, int64_t width, const Buffer& vector,
                    const std::function<Expr(const Expr& row, const Expr& column)>& base) const {
    const int64_t lanes = std::min(width, kLanes), vectors = width / lanes;
    const Buffer acc = make_buffer("acc", wide_, {Expr(rows), Expr(width)}, Scope::kRegister);
    const auto each_lane = [&](const std::function<Stmt(const Expr& lane)>& body) {
      return loop(
          "v", vectors,
          [&](const Expr& v) {
            return loop(
                "lane", lanes, [&](const Expr& lane) { return body(v * lanes + lane); },
                lanes > 1 ? ForKind::kVectorized : ForKind::kSerial);
          },
          ForKind::kUnrolled);
    };
    const auto each_row = [&](const std::function<Stmt(const Expr& r)>& body) {
      return loop("r", rows, body, ForKind::kUnrolled);
    };
    const auto each = [&](const std::function<Stmt(const Expr& r, const Expr& lane)>& body) {
      return each_row([&](const Expr& r) { return each_lane([&](const Expr& lane) { return body(r, lane); }); });
    };
    const Stmt init = each([&](const Expr& r, const Expr& lane) {
      return Store::make(acc, {r, lane}, base(b + r, start + lane));
    });
    const Stmt add = loop("k", hidden_, [&](const Expr& k) {
      return each_row([&](const Expr& r) {
        const Var by("by", wide_);
        const Stmt row = each_lane([&](const Expr& lane) {
          return Store::make(acc, {r, lane},
                             load(acc, {r, lane}) + Expr(by) * widen(ctx_.input(kRecurrent)(d, k, start + lane)));
        });
        return LetStmt::make(by, load(vector, {d, b + r, k}), row);
      });
    });
    const Stmt store = each([&](const Expr& r, const Expr& lane) {
      return Store::make(sums_, {d, b + r, start + lane}, load(acc, {r, lane}));
    });
    return Allocate::make(acc, Block::make({init, add, store}));
  }

  Stmt step(int d, const Expr& b, int64_t rows, const Expr& t) const {
    const int64_t columns = layer_.gates() * hidden_;
    const auto input = [&](const Expr& row, const Expr& column) {
      return widen(ctx_.input(kInputs)(t, row, column + d * columns));
    };
    const auto emit = [&](const Expr& row, const Expr& j, const Expr& value) {
      const Var next("next", wide_);
      return LetStmt::make(next, value,
                           Block::make({Store::make(h_, {d, row, j}, next),
                                        Store::make(outputs_[0], {t, d, row, j}, cast(dtype_, next))}));
    };
    const auto sum = [&](const Expr& row, int64_t gate, const Expr& j) {
      return load(sums_, {d, row, j + gate * hidden_});
    };
    if (layer_.kind == CellKind::kRnn)
      return Block::make(
          {products(d, b, rows, 0, columns, h_, input), for_each_unit(b, rows, [&](const Expr& row, const Expr& j) {
             return emit(row, j, f(d, 0, sum(row, 0, j)));
           })});
    if (layer_.kind == CellKind::kLstm)
      return Block::make(
          {products(d, b, rows, 0, columns, h_, input), for_each_unit(b, rows, [&](const Expr& row, const Expr& j) {
             return lstm(d, row, j, [&](const Expr& value) { return emit(row, j, value); });
           })});
    const auto update = [&](const Expr& row, const Expr& j, const Expr& from_h) {
      const Var z("z", wide_);
      const Expr old = load(h_, {d, row, j});
      return LetStmt::make(z, f(d, 0, sum(row, 0, j)),
                           emit(row, j, (make_const(wide_, 1) - z) * f(d, 1, from_h) + Expr(z) * old));
    };
    if (layer_.linear_before_reset) {
      const auto hidden_bias = [&](const Expr&, const Expr& column) {
        return ctx_.has(kHiddenBias) ? widen(ctx_.input(kHiddenBias)(d, column - 2 * hidden_)) : zero();
      };
      return Block::make({products(d, b, rows, 0, 2 * hidden_, h_, input),
                          products(d, b, rows, 2 * hidden_, columns, h_, hidden_bias),
                          for_each_unit(b, rows, [&](const Expr& row, const Expr& j) {
                            const Expr reset = f(d, 0, sum(row, 1, j));
                            return update(row, j, input(row, j + 2 * hidden_) + reset * sum(row, 2, j));
                          })});
    }
    return Block::make(
        {products(d, b, rows, 0, 2 * hidden_, h_, input),
         for_each_unit(b, rows,
                       [&](const Expr& row, const Expr& j) {
                         return Store::make(reset_, {d, row, j}, load(h_, {d, row, j}) * f(d, 0, sum(row, 1, j)));
                       }),
         products(d, b, rows, 2 * hidden_, columns, reset_, input),
         for_each_unit(b, rows, [&](const Expr& row, const Expr& j) { return update(row, j, sum(row, 2, j)); })});
  }

  Stmt lstm(int d, const Expr& b, const Expr& j, const std::function<Stmt(const Expr&)>& emit) const {
    const Expr old = load(c_, {d, b, j});
    const auto sum = [&](int64_t gate) { return load(sums_, {d, b, j + gate * hidden_}); };
    const auto gate = [&](int64_t n, const Expr& state) {
      return ctx_.has(kPeepholes) ? sum(n) + widen(ctx_.input(kPeepholes)(d, j + n * hidden_)) * state : sum(n);
    };
    const Var in("in", wide_), forget("forget", wide_), cell("cell", wide_);
    const Expr out = f(d, 0, gate(1, cell));
    Stmt body = Block::make({Store::make(c_, {d, b, j}, cell), emit(out * apply(layer_.activation(d, 2), cell))});
    body = LetStmt::make(cell, Expr(forget) * old + Expr(in) * f(d, 1, sum(3)), body);
    body = LetStmt::make(forget, layer_.input_forget ? make_const(wide_, 1) - in : f(d, 0, gate(2, old)), body);
    return LetStmt::make(in, f(d, 0, gate(0, old)), body);
  }

  const ComputeContext& ctx_;
  const RecurrentLayer layer_;
  const std::vector<Buffer>& outputs_;
  const DType dtype_, wide_;
  const Expr steps_, batch_;
  const int64_t hidden_;
  Buffer h_, c_, sums_, reset_;
};

}  // namespace

Stmt recurrence_steps(const ComputeContext& ctx, const RecurrentLayer& layer, const std::vector<Buffer>& outputs) {
  return Steps(ctx, layer, outputs).all();
}

}  // namespace tensmith::graph::ops
