// Results of a reduction that rest in a cache during one iteration of a loop (cache_inplace).
#include "schedule/lower/nest_builder.h"

namespace tensmith {

Region NestBuilder::region_of_results(NestInstance& in) {
  const StageState& s = stage(in.stage);
  Region region;
  RangeMap free;
  for (size_t a = 0; a < s.axis_loops.size(); ++a) {
    const int loop = s.axis_loops[a];
    const Expr last = in.domain.min[a] + in.domain.extent[a] - 1;
    Interval range = bounds_of(in.domain.min[a] + value_of(in, loop, &free), free, facts_);
    if (range.lo.get() == nullptr) range.lo = in.domain.min[a];
    if (range.hi.get() == nullptr) range.hi = last;
    const bool whole = !s.consumer_of(loop) && in.value[loop].get() == nullptr;
    const Interval wide = whole ? in.domain.wide(a) : range;
    // Tails under a condition reach beyond the extent, where nothing is computed.
    if (!stays_inside(in, loop) && !can_prove(range.hi <= last, facts_)) range.hi = min(range.hi, last);
    Expr extent = short_form(range.hi - range.lo + 1);
    if (!can_prove(extent >= 0, facts_)) extent = short_form(max(extent, Expr(0)));
    region.min.push_back(short_form(range.lo));
    region.extent.push_back(extent);
    region.wide_min.push_back(short_form(wide.lo));
    region.wide_extent.push_back(short_form(wide.hi - wide.lo + 1));
  }
  return region;
}

Stmt NestBuilder::emit_cached(NestInstance in, size_t k) {
  in.cached = true;
  const std::vector<Buffer>& outputs = stage(in.stage).stage->outputs;
  NestInstance at = in;
  const Region region = region_of_results(at);
  ResultMove take_up, put_back;
  for (size_t o = 0; o < outputs.size(); ++o) {
    take_up.from.push_back(storage_.at(outputs[o].get()));
    take_up.to.push_back(
        allocate_for(in.stage, static_cast<int>(o), region, /*at_root=*/false, -1, 0, stage(in.stage).cache_scope));
  }
  put_back = {take_up.to, take_up.from};
  const auto move = [&](const ResultMove& how) {
    NestInstance copying = in;
    copying.move = &how;
    return rest(std::move(copying), k, /*init=*/true);
  };
  std::vector<Stmt> stmts;
  if (in.init_done) stmts.push_back(move(take_up));
  for (size_t o = 0; o < outputs.size(); ++o) storage_[outputs[o].get()] = take_up.to[o];
  stmts.push_back(rest(in, k, /*init=*/false));
  for (size_t o = 0; o < outputs.size(); ++o) storage_[outputs[o].get()] = take_up.from[o];
  stmts.push_back(move(put_back));
  Stmt body = Block::make(stmts);
  for (const Storage& cache : take_up.to) body = Allocate::make(cache.buffer, body);
  return body;
}

Stmt NestBuilder::move_leaf(const NestInstance& instance) {
  NestInstance in = instance;
  const VarMap map = axis_values(in, /*with_reduce=*/false);
  std::vector<Expr> index;
  for (const Axis& axis : stage(in.stage).stage->axes) index.push_back(map.at(axis.var.get()));
  std::vector<Stmt> stores;
  for (size_t o = 0; o < in.move->from.size(); ++o) {
    const Storage &from = in.move->from[o], &to = in.move->to[o];
    stores.push_back(Store::make(to.buffer, physical(to, index), Load::make(from.buffer, physical(from, index))));
  }
  return Block::make(stores);
}

}  // namespace tensmith
