#include "schedule/primitives/loop_marks.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace tensmith {

namespace {

/// What a mark says something of when its loop becomes two.
enum class MarkOf : uint8_t { kIterations, kBody, kLoop };

MarkOf mark_of(const std::string& key) {
  if (key == "min_chunk" || key == "piece") return MarkOf::kIterations;
  return key == "unroll" ? MarkOf::kBody : MarkOf::kLoop;
}

int64_t times(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

}  // namespace

std::optional<int64_t> constant_extent(const StageState& stage, int loop) {
  const LoopRelation* made = stage.maker_of(loop);
  if (!made) {
    int64_t extent;
    for (const auto& [loops, axes] :
         {std::pair{&stage.axis_loops, &stage.stage->axes}, std::pair{&stage.reduce_loops, &stage.stage->reduce_axes}})
      for (size_t k = 0; k < loops->size(); ++k)
        if ((*loops)[k] == loop)
          return as_const_int((*axes)[k].extent, &extent) ? std::optional<int64_t>(extent) : std::nullopt;
    return 1;  // unit_loop
  }
  if (made->kind == LoopRelation::Kind::kSplit) {
    if (loop == made->inner) return made->factor;
    const std::optional<int64_t> whole = constant_extent(stage, made->whole);
    if (!whole) return {};
    return *whole / made->factor + (*whole % made->factor != 0);
  }
  const std::optional<int64_t> outer = constant_extent(stage, made->outer), inner = constant_extent(stage, made->inner);
  if (!outer || !inner) return {};
  return times(*outer, *inner);
}

const std::vector<std::string>& mark_keys() {
  static const std::vector<std::string> keys = {"unroll", "min_chunk", "piece"};
  return keys;
}

bool is_note(const std::string& key) {
  constexpr std::string_view kPrefix = "note.";
  return key.starts_with(kPrefix) && key.size() > kPrefix.size();
}

Result<void> check_key(const std::string& key) {
  if (is_note(key) || std::find(mark_keys().begin(), mark_keys().end(), key) != mark_keys().end()) return {};
  return Failure{"unknown-annotation",
                 "key: expected unroll, min_chunk or piece, which lowering and code generation read, or note.NAME for "
                 "anything else, got '" +
                     key + "'"};
}

Result<void> check_mark(const std::string& key, int64_t value) {
  if (value >= 1) return {};
  return Failure{"bad-annotation", key + ": expected at least 1, got " + std::to_string(value)};
}

void split_marks(StageState& stage, int whole, int outer, int inner, int64_t factor) {
  for (const auto& [key, value] : stage.loops[whole].attrs) {
    const MarkOf of = mark_of(key);
    if (of == MarkOf::kIterations) stage.loops[outer].attrs[key] = value / factor + (value % factor != 0);
    else if (of == MarkOf::kLoop) stage.loops[outer].attrs[key] = value;
    if (of != MarkOf::kIterations) stage.loops[inner].attrs[key] = value;
  }
  stage.loops[whole].attrs.clear();
}

void fuse_marks(StageState& stage, int outer, int inner, int fused) {
  const int64_t inside = constant_extent(stage, inner).value_or(1);
  Attrs marks = std::move(stage.loops[inner].attrs);
  for (const auto& [key, value] : stage.loops[outer].attrs) {
    const MarkOf of = mark_of(key);
    if (of == MarkOf::kBody) marks.try_emplace(key, value);
    else marks[key] = of == MarkOf::kIterations ? times(value, std::max<int64_t>(inside, 1)) : value;
  }
  stage.loops[outer].attrs.clear();
  stage.loops[inner].attrs.clear();
  stage.loops[fused].attrs = std::move(marks);
}

}  // namespace tensmith
