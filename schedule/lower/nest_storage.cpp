#include <algorithm>
#include <numeric>

#include "schedule/lower/nest_builder.h"

namespace tensmith {

namespace {

// Stack frames of worker threads are small; what is larger becomes a workspace.
constexpr int64_t kMaxStackBytes = 128 * 1024;
// The most lanes that a vectorized loop may have.
constexpr int64_t kMaxLanes = 64;

int64_t next_power_of_two(int64_t n) {
  int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

/// Makes the dims from `first` on together a multiple of `line` elements, a cache line, so that pieces begin at one
/// (and so do larger ones, made of those).
void lengthen_pieces(std::vector<Expr>& shape, size_t first, int64_t line) {
  std::vector<int64_t> extents;
  int64_t count = 1;
  for (size_t d = first; d < shape.size(); ++d) {
    int64_t extent = 0;
    if (!as_const_int(simplify(shape[d]), &extent) || extent < 1 || __builtin_mul_overflow(count, extent, &count)) {
      shape.back() = ceil_div(shape.back(), Expr(line)) * Expr(line);
      return;
    }
    extents.push_back(extent);
  }
  // The dim by which the least is added.
  size_t best = shape.size() - 1;
  int64_t least = 0;
  for (size_t d = shape.size(); d-- > first;) {
    const int64_t extent = extents[d - first], rest = count / extent, multiple = line / std::gcd(line, rest);
    const int64_t longer = (extent + multiple - 1) / multiple * multiple;
    if (least != 0 && rest * longer >= least) continue;
    least = rest * longer;
    best = d;
  }
  shape[best] = Expr(least / (count / extents[best - first]));
}

/// Replaces accesses of logical buffers by accesses of their storage.
class Remapper : public Mutator {
 public:
  using Physical = std::function<std::vector<Expr>(const Storage&, const std::vector<Expr>&)>;
  Remapper(const std::map<const BufferNode*, Storage>& storage, Physical physical)
      : storage_(storage), physical_(std::move(physical)) {}
  Expr mutate(const Expr& e) override {
    Expr rebuilt = mutate_children(e);
    if (const auto* read = rebuilt.as<Load>())
      if (const auto it = storage_.find(read->buffer.get()); it != storage_.end())
        return Load::make(it->second.buffer, physical_(it->second, read->indices), read->predicate);
    return rebuilt;
  }
  Stmt mutate(const Stmt& s) override {
    Stmt rebuilt = mutate_children(s);
    if (const auto* store = rebuilt.as<Store>())
      if (const auto it = storage_.find(store->buffer.get()); it != storage_.end())
        return Store::make(it->second.buffer, physical_(it->second, store->indices), store->value, store->predicate);
    return rebuilt;
  }

 private:
  const std::map<const BufferNode*, Storage>& storage_;
  Physical physical_;
};

}  // namespace

std::vector<Expr> NestBuilder::physical(const Storage& storage, const std::vector<Expr>& index) const {
  std::vector<Expr> relative;
  for (size_t d = 0; d < index.size(); ++d) {
    const bool folded = d < storage.fold.size() && storage.fold[d].get() != nullptr;
    relative.push_back(folded ? floor_mod(index[d], storage.fold[d]) : index[d] - storage.origin[d]);
  }
  std::vector<Expr> place = storage.layout.physical_index(relative);
  if (storage.slot) place.insert(place.begin(), storage.slot);
  return place;
}

Expr NestBuilder::remap(const Expr& e) const {
  return Remapper(storage_, [this](const Storage& s, const std::vector<Expr>& i) { return physical(s, i); }).mutate(e);
}

Stmt NestBuilder::remap(const Stmt& s) const {
  return Remapper(storage_, [this](const Storage& st, const std::vector<Expr>& i) { return physical(st, i); })
      .mutate(s);
}

Storage NestBuilder::allocate_for(int index, int output, const Region& region, bool at_root, int fold_dim,
                                  int64_t slots, std::optional<Scope> wanted) {
  const StageState& s = stage(index);
  if (!wanted) wanted = s.scope;
  const Buffer& logical = s.stage->outputs[output];
  Storage storage{{}, region.min, s.layout_of(output)};
  std::vector<Expr> extents;
  int64_t bytes = logical->dtype.bytes();
  bool constant = true;
  const auto only_dims = [&](const Expr& e) {
    const auto vars = collect_vars(e);
    return std::all_of(vars.begin(), vars.end(), [&](const VarNode* v) {
      return std::any_of(state_.dims.begin(), state_.dims.end(), [&](const Var& dim) { return dim.get() == v; });
    });
  };
  for (size_t d = 0; d < region.extent.size(); ++d) {
    Expr extent = region.extent[d];
    VarFacts bounds = constant_bounds(extent, facts_);
    if (!region.wide_extent.empty())
      if (const VarFacts wide = constant_bounds(region.wide_extent[d], facts_);
          wide.hi && (!bounds.hi || *wide.hi < *bounds.hi))
        bounds.hi = wide.hi;
    if (!at_root) {
      if (!bounds.hi && wanted == Scope::kRegister)
        throw ScheduleError("register-size", "schedule " + state_.name + ": stage " + s.name +
                                                 " lives in registers, but its extent " + std::to_string(d) +
                                                 " has no constant bound; split the consumer's loops with tail=peel\n" +
                                                 loop_nest_text(state_));
      if (bounds.hi) extent = Expr(*bounds.hi);
      // Workspaces are sized where the kernel is called, which knows the dims but no loop: the whole extent is enough
      // for any part.
      else if (!only_dims(extent)) extent = logical->shape[d];
    }
    // A padded tail computes up to the next multiple of its factor.
    for (const LoopRelation& r : s.relations)
      if (r.kind == LoopRelation::Kind::kSplit && r.tail == Tail::kPad && d < s.axis_loops.size() &&
          r.whole == s.axis_loops[d])
        extent = short_form(ceil_div(extent, Expr(r.factor)) * Expr(r.factor));
    if (static_cast<int>(d) == fold_dim) {
      // A ring: a power of two, since every access takes the remainder. Without a constant bound it holds everything.
      int64_t length;
      storage.origin[d] = Expr(0);
      if (as_const_int(extent, &length) && bounds.hi) {
        length = next_power_of_two(std::max<int64_t>(length, 1));
        extent = Expr(length);
        storage.fold.resize(region.extent.size());
        storage.fold[d] = extent;
      } else {
        extent = logical->shape[d];
      }
    }
    extents.push_back(extent);
  }
  std::vector<Expr> shape = storage.layout.physical_shape(extents);
  if (!s.separators.empty())
    lengthen_pieces(shape, static_cast<size_t>(s.separators.back()), line_elements(logical->dtype));
  if (slots > 0) shape.insert(shape.begin(), Expr(slots));
  for (Expr& extent : shape) extent = short_form(extent);
  if (int64_t row; s.align_elements > 0 && shape.size() >= 2 && as_const_int(shape.back(), &row) &&
                   row * logical->dtype.bytes() % 4096 == 0)
    shape.back() = Expr(row + s.align_elements);
  for (const Expr& extent : shape) {
    int64_t value;
    constant = constant && as_const_int(extent, &value) && !__builtin_mul_overflow(bytes, value, &bytes);
  }
  // Rows of values start at full vectors, so that the masked vector of a tail never reaches into the next row. Costs
  // nothing: only what is accessed becomes a value.
  if (int64_t row; wanted == Scope::kRegister && shape.size() >= 2 && as_const_int(shape.back(), &row) && row > 1)
    shape.back() = Expr((row + kMaxLanes - 1) / kMaxLanes * kMaxLanes);
  Scope scope = Scope::kGlobal;
  if (wanted) scope = *wanted;
  else if (!at_root && constant && bytes <= kMaxStackBytes) scope = Scope::kStack;
  storage.buffer = make_buffer(s.name, logical->dtype, shape, scope);
  return storage;
}

}  // namespace tensmith
