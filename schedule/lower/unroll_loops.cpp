#include "schedule/lower/unroll_loops.h"

#include "runtime/base/error.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

int64_t count_leaves(const Stmt& s) {
  int64_t count = 0;
  visit(s, [&](const Stmt& node) {
    count += node->kind == NodeKind::kStore || node->kind == NodeKind::kEvaluate;
    return true;
  });
  return count;
}

class Unroller : public Mutator {
 public:
  explicit Unroller(int max_statements) : budget_(max_statements) {}
  using Mutator::mutate;
  Expr mutate(const Expr& e) override { return e; }
  Stmt mutate(const Stmt& s) override {
    const Stmt rebuilt = mutate_children(s);
    const auto* loop = rebuilt.as<For>();
    if (!loop) return rebuilt;
    int64_t extent;
    const bool constant = as_const_int(loop->extent, &extent);
    if (loop->for_kind == ForKind::kUnrolled) {
      if (!constant) return For::make(loop->var, loop->min, loop->extent, ForKind::kSerial, loop->body, loop->attrs);
      return copies(*loop, loop->min, extent);
    }
    const auto factor = loop->attrs.find("unroll");
    if (loop->for_kind != ForKind::kSerial || factor == loop->attrs.end() || factor->second <= 1 || !constant ||
        extent % factor->second)
      return rebuilt;
    Attrs attrs = loop->attrs;
    attrs.erase("unroll");
    const Expr start = loop->min + Expr(loop->var) * factor->second;
    return For::make(loop->var, Expr(0), Expr(extent / factor->second), ForKind::kSerial,
                     copies(*loop, start, factor->second), attrs);
  }

 private:
  Stmt copies(const For& loop, const Expr& start, int64_t count) {
    const int64_t leaves = count_leaves(loop.body);
    budget_ -= leaves * (count - 1);
    if (budget_ < 0)
      throw ScheduleError("unroll-limit",
                          "loop " + loop.var.name() + ": unrolling " + std::to_string(count) + " copies of " +
                              std::to_string(leaves) +
                              " statements exceeds the limit of statements in a kernel; use smaller tiles");
    std::vector<Stmt> stmts;
    for (int64_t k = 0; k < count; ++k) stmts.push_back(substitute(loop.body, {{loop.var.get(), start + k}}));
    return Block::make(std::move(stmts));
  }

  int64_t budget_;
};

}  // namespace

Stmt unroll_loops(const Stmt& s, int max_statements) { return Unroller(max_statements).mutate(s); }

}  // namespace tensmith
