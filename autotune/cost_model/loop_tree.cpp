#include "autotune/cost_model/loop_tree.h"

#include <algorithm>
#include <bitset>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "autotune/cost_model/affine_index.h"
#include "autotune/cost_model/sample_points.h"
#include "schedule/lower/lowering.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

using ActivePoints = std::bitset<kSamplePoints>;
constexpr int kMaxDepth = 63;

/// Units: vector instructions that the functions are written out as (codegen/math), additions and products alike.
double special_instructions(Intrinsic id) {
  switch (id) {
    case Intrinsic::kExp: return 18;
    case Intrinsic::kLog: return 24;
    case Intrinsic::kTanh: return 22;
    case Intrinsic::kErf: return 30;
    case Intrinsic::kSigmoid: return 24;
    case Intrinsic::kSin:
    case Intrinsic::kCos: return 30;
    case Intrinsic::kPow: return 60;
    default: return 40;
  }
}

/// Divisors at which a loop's variable is taken apart by lets at the head of its body, ascending.
std::vector<int64_t> split_points(const For& loop) {
  std::unordered_map<const VarNode*, int64_t> unit{{loop.var.get(), 1}};
  std::vector<int64_t> points;
  const Stmt* at = &loop.body;
  while (const auto* let = at->as<LetStmt>()) {
    if (const auto* binary = let->value.as<Binary>()) {
      const auto* var = binary->a.as<VarNode>();
      const auto base = var ? unit.find(var) : unit.end();
      int64_t divisor = 0;
      const bool divides = binary->op == BinaryOp::kFloorDiv, remains = binary->op == BinaryOp::kFloorMod;
      if (base != unit.end() && (divides || remains) && as_const_int(binary->b, &divisor) && divisor > 1 &&
          divisor < (int64_t{1} << 40) && base->second < (int64_t{1} << 20)) {
        points.push_back(base->second * divisor);
        if (divides) unit[let->var.get()] = base->second * divisor;
      }
    }
    at = &let->body;
  }
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  // Digits need each point to divide the next one.
  std::vector<int64_t> kept;
  for (int64_t p : points)
    if (kept.empty() || p % kept.back() == 0) kept.push_back(p);
  return kept;
}

class TreeReader {
 public:
  TreeReader(const LoopFunction& function, int threads) {
    tree_.threads = threads;
    tree_.loops.emplace_back();
    extents_ = {1};
    scope_.extents = &extents_;
    active_.set();
    for (const Buffer& buffer : function.buffers) add_buffer(buffer, true);
    written_.emplace_back();
    collect_writes(function.body, written_.back());
    read(function.body);
  }

  LoopTree take() { return std::move(tree_); }

 private:
  struct Read {
    uint64_t loops = 0;
    bool is_product = false;
    bool is_vector = false;
  };

  static void collect_writes(const Stmt& s, std::unordered_set<const BufferNode*>& written) {
    visit(s, [&](const Stmt& inner) {
      if (const auto* store = inner.as<Store>()) written.insert(store->buffer.get());
      return true;
    });
  }

  int add_buffer(const Buffer& buffer, bool is_parameter) {
    TreeBuffer entry;
    double elements = 1;
    std::vector<double> strides(buffer->shape.size(), 1);
    for (size_t d = buffer->shape.size(); d-- > 0;) {
      strides[d] = elements;
      elements *= static_cast<double>(std::max<int64_t>(1, sample_value(buffer->shape[d], vars_)[0]));
    }
    entry.element_bytes = buffer->dtype.bytes();
    entry.bytes = elements * static_cast<double>(entry.element_bytes);
    entry.scope = buffer->scope;
    entry.is_parameter = is_parameter;
    entry.loop = loop_;
    tree_.buffers.push_back(entry);
    const int number = static_cast<int>(tree_.buffers.size()) - 1;
    buffers_[buffer.get()] = number;
    strides_.push_back(std::move(strides));
    return number;
  }

  int buffer_number(const Buffer& buffer) {
    const auto known = buffers_.find(buffer.get());
    return known != buffers_.end() ? known->second : add_buffer(buffer, true);
  }

  void read(const Stmt& s) {
    if (s.get() == nullptr) return;
    switch (s->kind) {
      case NodeKind::kFor: return read_for(*s.as<For>());
      case NodeKind::kWhile: return read_while(*s.as<While>());
      case NodeKind::kIf: return read_if(*s.as<If>());
      case NodeKind::kLetStmt: {
        const auto* let = s.as<LetStmt>();
        vars_[let->var.get()] = sample_value(let->value, vars_);
        scope_.vars[let->var.get()] = affine_index(let->value, scope_);
        return read(let->body);
      }
      case NodeKind::kBlock:
        for (const Stmt& part : s.as<Block>()->stmts) read(part);
        return;
      case NodeKind::kAllocate: add_buffer(s.as<Allocate>()->buffer, false); return read(s.as<Allocate>()->body);
      case NodeKind::kStore: return read_store(*s.as<Store>());
      case NodeKind::kEvaluate: return read_evaluate(*s.as<Evaluate>());
      default: return;
    }
  }

  int add_loop(ForKind kind, double extent, double chance) {
    TreeLoop loop;
    loop.parent = loop_;
    loop.depth = tree_.loops[loop_].depth + 1;
    loop.kind = kind;
    loop.extent = std::max(0.0, extent);
    loop.run = loop.extent;
    loop.chance = chance;
    tree_.loops.push_back(loop);
    extents_.push_back(loop.extent);
    return static_cast<int>(tree_.loops.size()) - 1;
  }

  /// Reads a body inside `loop`; conditions outside of it no longer count.
  void read_inside(int loop, bool is_written_out, const Stmt& body) {
    const int outer = loop_, guards = guards_;
    const double chance = chance_;
    const bool vector_guard = vector_guard_;
    loop_ = loop;
    chance_ = 1;
    if (!is_written_out) guards_ = 0;
    if (!is_written_out) vector_guard_ = false;
    written_.emplace_back();
    collect_writes(body, written_.back());
    // A digit more means several loops at once: they write alike.
    while (static_cast<int>(written_.size()) <= tree_.loops[loop].depth) written_.push_back(written_.back());
    read(body);
    written_.resize(static_cast<size_t>(tree_.loops[outer].depth) + 1);
    loop_ = outer;
    chance_ = chance;
    guards_ = guards;
    vector_guard_ = vector_guard;
  }

  void read_for(const For& loop) {
    const SampledValue min = sample_value(loop.min, vars_), extent = sample_value(loop.extent, vars_);
    double mean = 0;
    int points = 0;
    for (int k = 0; k < kSamplePoints; ++k)
      if (active_[k]) mean += static_cast<double>(std::max<int64_t>(0, extent[k])), ++points;
    mean = points ? mean / points : static_cast<double>(extent[0]);
    vars_[loop.var.get()] = spread_points(min, extent, salt_++);
    const bool is_written_out = loop.for_kind == ForKind::kVectorized || loop.for_kind == ForKind::kUnrolled;
    if (loop.for_kind == ForKind::kVectorized) vector_vars_.insert(loop.var.get());
    AffineIndex value = affine_index(loop.min, scope_);
    const int parent = loop_, first = static_cast<int>(tree_.loops.size());
    if (tree_.loops[loop_].depth + 8 >= kMaxDepth) return;  // 55 loops inside each other: nobody writes that
    int64_t constant = 0;
    std::vector<int64_t> points_of_digits;
    if (!is_written_out && as_const_int(loop.extent, &constant)) points_of_digits = split_points(loop);
    double left = mean, unit = 1, chance = chance_;
    std::vector<std::pair<double, double>> digits;  // innermost first: extent, unit
    for (int64_t point : points_of_digits) {
      const double radix = static_cast<double>(point) / unit;
      if (radix <= 1 || radix >= left) break;
      digits.emplace_back(radix, unit);
      left = std::ceil(left / radix);
      unit = static_cast<double>(point);
    }
    digits.emplace_back(left, unit);
    int last = loop_;
    for (size_t d = digits.size(); d-- > 0;) {
      loop_ = last;
      last = add_loop(loop.for_kind, digits[d].first, chance);
      chance = 1;
      value.loops[last] += digits[d].second;
    }
    loop_ = parent;
    scope_.vars[loop.var.get()] = std::move(value);
    const bool shares_out = loop.for_kind == ForKind::kParallel && !in_parallel_;
    if (shares_out && tree_.threads > 1) {
      TreeLoop& outermost = tree_.loops[first];
      outermost.shared_out = std::max(1.0, mean);
      const double rounds = std::ceil(outermost.shared_out / tree_.threads);
      outermost.run = outermost.extent * rounds / outermost.shared_out;
    }
    in_parallel_ = in_parallel_ || shares_out;
    read_inside(last, is_written_out, loop.body);
    if (shares_out) in_parallel_ = false;
  }

  void read_while(const While& loop) {
    const int number = add_loop(ForKind::kSerial, static_cast<double>(kGuessedValue), chance_);
    read_inside(number, false, loop.body);
  }

  void read_if(const If& branch) {
    const SampledValue cond = sample_value(branch.cond, vars_);
    ActivePoints holds;
    for (int k = 0; k < kSamplePoints; ++k) holds[k] = cond[k] != 0;
    const ActivePoints before = active_;
    const double chance = chance_, all = std::max<double>(1, static_cast<double>(before.count()));
    const bool vector_guard = vector_guard_;
    bool by_lane = false;
    visit(branch.cond, [&](const Expr& e) {
      by_lane = by_lane || (e.kind() == NodeKind::kVar && vector_vars_.count(static_cast<const VarNode*>(e.get())));
      return !by_lane;
    });
    ++guards_;
    vector_guard_ = vector_guard_ || by_lane;
    const auto side = [&](const ActivePoints& points, const Stmt& body) {
      if (body.get() == nullptr) return;
      active_ = points;
      // No point of few: seldom, not never.
      const double share = std::max(0.5, static_cast<double>(points.count())) / all;
      chance_ = chance * std::min(1.0, share);
      read(body);
    };
    side(before & holds, branch.then);
    side(before & ~holds, branch.otherwise);
    active_ = before;
    chance_ = chance;
    vector_guard_ = vector_guard;
    --guards_;
  }

  /// Strides by depth; the bits of loops that the address depends on.
  std::pair<TreeAccess, uint64_t> access(const Buffer& buffer, const std::vector<Expr>& indices) {
    TreeAccess out;
    out.buffer = buffer_number(buffer);
    const std::vector<double>& units = strides_[static_cast<size_t>(out.buffer)];
    out.strides.assign(static_cast<size_t>(tree_.loops[loop_].depth) + 1, 0);
    uint64_t bits = 0;
    for (size_t d = 0; d < indices.size(); ++d) {
      const AffineIndex index = affine_index(indices[d], scope_);
      const double unit = indices.size() == units.size() ? units[d] : 1;
      out.is_opaque = out.is_opaque || index.is_opaque;
      out.offset += index.constant * unit;
      for (const auto& [loop, coefficient] : index.loops) {
        const auto depth = static_cast<size_t>(tree_.loops[loop].depth);
        if (depth < out.strides.size()) out.strides[depth] += coefficient * unit;
        bits |= uint64_t{1} << depth;
      }
      if (index.is_opaque) bits |= loops_of(indices[d]);
    }
    out.loops = bits;
    return {std::move(out), bits};
  }

  /// Bits of the loops whose variables occur, in loaded indices too.
  uint64_t loops_of(const Expr& e) {
    uint64_t bits = 0;
    visit(e, [&](const Expr& inner) {
      if (inner.kind() != NodeKind::kVar) return true;
      const auto known = scope_.vars.find(static_cast<const VarNode*>(inner.get()));
      if (known != scope_.vars.end())
        for (const auto& [loop, coefficient] : known->second.loops) bits |= uint64_t{1} << tree_.loops[loop].depth;
      return true;
    });
    return bits;
  }

  /// A value that is loaded changes with the loops in which its buffer is written.
  uint64_t written_bits(const Buffer& buffer) const {
    uint64_t bits = 0;
    for (int at = loop_; at > 0; at = tree_.loops[at].parent) {
      const TreeLoop& loop = tree_.loops[at];
      const bool is_written_out = loop.kind == ForKind::kVectorized || loop.kind == ForKind::kUnrolled;
      if (!is_written_out && written_[static_cast<size_t>(loop.depth)].count(buffer.get()))
        bits |= uint64_t{1} << loop.depth;
    }
    return bits;
  }

  void add_op(TreeStore& store, OpKind kind, uint64_t loops, DType type, double count = 1) {
    for (TreeOp& op : store.ops) {
      if (op.kind != kind || op.loops != loops || op.element_bytes != type.bytes()) continue;
      op.count += count;
      return;
    }
    store.ops.push_back({kind, loops, type.bytes(), count});
  }

  static bool same_address(const TreeAccess& a, const TreeAccess& b) {
    return a.buffer == b.buffer && a.is_opaque == b.is_opaque && a.offset == b.offset && a.strides == b.strides;
  }

  Read count(const Expr& e, TreeStore& store) {
    switch (e.kind()) {
      case NodeKind::kVar: {
        const auto known = scope_.vars.find(static_cast<const VarNode*>(e.get()));
        Read out;
        if (known != scope_.vars.end())
          for (const auto& [loop, coefficient] : known->second.loops)
            out.loops |= uint64_t{1} << tree_.loops[loop].depth;
        return out;
      }
      case NodeKind::kLoad: {
        const auto* load = e.as<Load>();
        auto [read, bits] = access(load->buffer, load->indices);
        bits |= written_bits(load->buffer);
        const auto same = [&](const TreeAccess& other) { return same_address(other, read); };
        if (std::none_of(store.accesses.begin(), store.accesses.end(), same)) store.accesses.push_back(std::move(read));
        return {bits, false, false};
      }
      case NodeKind::kBinary: {
        const auto* binary = e.as<Binary>();
        const Read a = count(binary->a, store), b = count(binary->b, store);
        Read out{a.loops | b.loops, false, false};
        const DType operand = binary->a.dtype();
        const bool is_float = operand.is_float();
        switch (binary->op) {
          case BinaryOp::kAdd:
          case BinaryOp::kSub:
            // The product was counted already; together they are one instruction.
            if (is_float && (a.is_product || b.is_product)) {
              const uint64_t product = a.is_product ? a.loops : b.loops;
              add_op(store, OpKind::kMul, product, operand, -1);
              add_op(store, OpKind::kFma, out.loops, operand);
            } else {
              add_op(store, is_float ? OpKind::kAdd : OpKind::kInteger, out.loops, operand);
            }
            break;
          case BinaryOp::kMul:
            add_op(store, is_float ? OpKind::kMul : OpKind::kInteger, out.loops, operand);
            out.is_product = is_float;
            break;
          case BinaryOp::kDiv:
          case BinaryOp::kFloorDiv:
          case BinaryOp::kFloorMod:
          case BinaryOp::kTruncDiv:
          case BinaryOp::kTruncMod: add_op(store, OpKind::kDivide, out.loops, operand); break;
          case BinaryOp::kMin:
          case BinaryOp::kMax: add_op(store, is_float ? OpKind::kAdd : OpKind::kInteger, out.loops, operand); break;
          default:
            add_op(store, is_compare(binary->op) || operand.is_bool() ? OpKind::kSelect : OpKind::kInteger, out.loops,
                   operand);
        }
        return out;
      }
      case NodeKind::kCall: return count_call(*e.as<Call>(), e, store);
      default: {
        Read out;
        for_each_child(e, [&](const Expr& child) { out.loops |= count(child, store).loops; });
        if (e.kind() == NodeKind::kSelect || e.kind() == NodeKind::kNot)
          add_op(store, OpKind::kSelect, out.loops, e.dtype());
        if (e.kind() == NodeKind::kCast) add_op(store, OpKind::kConvert, out.loops, e.dtype());
        return out;
      }
    }
  }

  Read count_call(const Call& call, const Expr& e, TreeStore& store) {
    Read out;
    for (const Expr& argument : call.args) out.loops |= count(argument, store).loops;
    switch (call.id) {
      case Intrinsic::kAbs:
      case Intrinsic::kFloor:
      case Intrinsic::kCeil:
      case Intrinsic::kTrunc:
      case Intrinsic::kRoundEven:
      case Intrinsic::kCopySign:
      case Intrinsic::kMinNum:
      case Intrinsic::kMaxNum: add_op(store, OpKind::kAdd, out.loops, e.dtype()); break;
      case Intrinsic::kSqrt:
      case Intrinsic::kRsqrt: add_op(store, OpKind::kDivide, out.loops, e.dtype()); break;
      case Intrinsic::kFma:
      case Intrinsic::kDotAccumulate: add_op(store, OpKind::kFma, out.loops, e.dtype()); break;
      case Intrinsic::kIsNan:
      case Intrinsic::kIsInf: add_op(store, OpKind::kSelect, out.loops, e.dtype()); break;
      case Intrinsic::kBitcast:
      case Intrinsic::kAddressOf:
      case Intrinsic::kConcat: break;
      case Intrinsic::kPopCount:
      case Intrinsic::kLeadingZeros:
      case Intrinsic::kMulHigh:
      case Intrinsic::kExtractLane:
      case Intrinsic::kShuffle: add_op(store, OpKind::kInteger, out.loops, e.dtype()); break;
      case Intrinsic::kReduceAdd:
      case Intrinsic::kReduceMul:
      case Intrinsic::kReduceMin:
      case Intrinsic::kReduceMax:
      case Intrinsic::kReduceAnd:
      case Intrinsic::kReduceOr: add_op(store, OpKind::kReduceLanes, out.loops, e.dtype()); break;
      default: add_op(store, OpKind::kSpecial, out.loops, e.dtype(), special_instructions(call.id));
    }
    return out;
  }

  TreeStore here() const {
    TreeStore store;
    store.loop = loop_;
    store.chance = chance_;
    store.guards = guards_;
    store.has_vector_guard = vector_guard_;
    return store;
  }

  void read_store(const Store& s) {
    TreeStore store = here();
    const Read value = count(s.value, store);
    auto [write, bits] = access(s.buffer, s.indices);
    write.is_write = true;
    store.accumulates = std::any_of(store.accesses.begin(), store.accesses.end(),
                                    [&](const TreeAccess& read) { return same_address(read, write); });
    // One element from all lanes.
    for (int at = loop_; at > 0 && store.accumulates; at = tree_.loops[at].parent) {
      const TreeLoop& loop = tree_.loops[at];
      const uint64_t bit = uint64_t{1} << loop.depth;
      if (loop.kind == ForKind::kVectorized && (value.loops & bit) && !(bits & bit))
        add_op(store, OpKind::kReduceLanes, (value.loops | bits) & ~bit, s.value.dtype());
    }
    tree_.buffers[static_cast<size_t>(write.buffer)].is_written = true;
    store.accesses.push_back(std::move(write));
    drop_empty(store);
    tree_.stores.push_back(std::move(store));
  }

  void read_evaluate(const Evaluate& s) {
    TreeStore store = here();
    const auto* call = s.value.as<Call>();
    const auto* line = call && call->id == Intrinsic::kPrefetch ? call->args[0].as<Load>() : nullptr;
    if (line) {
      store.accesses.push_back(access(line->buffer, line->indices).first);
      store.accesses.back().is_prefetch = true;
    } else {
      count(s.value, store);
    }
    drop_empty(store);
    tree_.stores.push_back(std::move(store));
  }

  static void drop_empty(TreeStore& store) {
    std::erase_if(store.ops, [](const TreeOp& op) { return op.count <= 0; });
  }

  LoopTree tree_;
  std::vector<double> extents_;
  AffineScope scope_;
  SampledVars vars_;
  ActivePoints active_;
  std::unordered_map<const BufferNode*, int> buffers_;
  std::vector<std::vector<double>> strides_;  // by buffer and dimension
  std::unordered_set<const VarNode*> vector_vars_;
  std::vector<std::unordered_set<const BufferNode*>> written_;  // by depth: what that loop's body writes
  int loop_ = 0, guards_ = 0, salt_ = 0;
  double chance_ = 1;
  bool vector_guard_ = false, in_parallel_ = false;
};

}  // namespace

std::vector<int> LoopTree::path(int loop) const {
  std::vector<int> out(static_cast<size_t>(loops[loop].depth) + 1);
  for (int at = loop; at >= 0; at = loops[at].parent) out[static_cast<size_t>(loops[at].depth)] = at;
  return out;
}

LoopFunction nests_of(const Schedule& schedule) {
  LowerOptions options;
  const auto passes = lowering_passes();
  options.pass_limit = 0;
  while (std::string_view(passes[static_cast<size_t>(options.pass_limit)].name) != "vectorize") ++options.pass_limit;
  return lower(schedule, options).function;
}

LoopTree read_loop_tree(const LoopFunction& function, int threads) { return TreeReader(function, threads).take(); }

}  // namespace tensmith
