#include "tensor/simplify/store.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/error.h"

namespace tensmith::simplifier {

namespace {

constexpr size_t kChunkBytes = 64 * 1024;
constexpr size_t kMaxKeptChunks = 64;  // 4 MiB a thread; what a rare giant used beyond that goes back
constexpr size_t kMaxFreeStores = 4;

thread_local std::vector<std::unique_ptr<Store>> free_stores;

bool same(const Value& a, const Value& b) {
  if (a.hash != b.hash || a.kind != b.kind || a.op != b.op || !(a.dtype == b.dtype) || a.count != b.count ||
      a.number != b.number || a.object != b.object)
    return false;
  for (uint32_t i = 0; i < a.count; ++i)
    if (a.kids[i] != b.kids[i]) return false;
  if (a.coefficients)
    for (uint32_t i = 0; i < a.count; ++i)
      if (a.coefficients[i] != b.coefficients[i]) return false;
  return true;
}

}  // namespace

Store::Store() : table_(1024), results_(1024) { chunks_.emplace_back(new std::byte[kChunkBytes]); }

std::unique_ptr<Store> Store::acquire() {
  if (free_stores.empty()) return std::make_unique<Store>();
  std::unique_ptr<Store> store = std::move(free_stores.back());
  free_stores.pop_back();
  return store;
}

void Store::release(std::unique_ptr<Store> store) {
  if (free_stores.size() >= kMaxFreeStores) return;
  store->clear();
  free_stores.push_back(std::move(store));
}

void Store::clear() {
  kept_.clear();
  large_.clear();
  num_values_ = num_results_ = 0;
  next_id_ = 0;
  chunk_ = offset_ = 0;
  if (chunks_.size() > kMaxKeptChunks) chunks_.resize(kMaxKeptChunks);
  if (++generation_ == 0) {  // wrapped: old marks would look new
    std::fill(table_.begin(), table_.end(), Slot());
    std::fill(results_.begin(), results_.end(), ResultSlot());
    generation_ = 1;
  }
}

void* Store::allocate(size_t bytes) {
  bytes = (bytes + 15) & ~size_t{15};
  if (bytes > kChunkBytes) {
    large_.emplace_back(new std::byte[bytes]);
    return large_.back().get();
  }
  if (offset_ + bytes > kChunkBytes) {
    if (++chunk_ == chunks_.size()) chunks_.emplace_back(new std::byte[kChunkBytes]);
    offset_ = 0;
  }
  void* result = chunks_[chunk_].get() + offset_;
  offset_ += bytes;
  return result;
}

Value* Store::copy(const Value& probe) {
  Value* value = new (allocate(sizeof(Value))) Value(probe);
  value->id = next_id_++;
  if (probe.count) {
    value->kids = static_cast<Value**>(allocate(probe.count * sizeof(Value*)));
    std::memcpy(value->kids, probe.kids, probe.count * sizeof(Value*));
  }
  if (probe.count && probe.coefficients) {
    value->coefficients = static_cast<int64_t*>(allocate(probe.count * sizeof(int64_t)));
    std::memcpy(value->coefficients, probe.coefficients, probe.count * sizeof(int64_t));
  }
  return value;
}

Value* Store::unique(const Value& probe) { return copy(probe); }

Value* Store::intern(const Value& probe, bool* is_new) {
  const size_t mask = table_.size() - 1;
  size_t at = probe.hash & mask;
  while (table_[at].generation == generation_) {
    if (same(*table_[at].value, probe)) {
      *is_new = false;
      return table_[at].value;
    }
    at = (at + 1) & mask;
  }
  *is_new = true;
  Value* value = copy(probe);
  table_[at] = {value, generation_};
  if (++num_values_ * 2 > table_.size()) grow();
  return value;
}

void Store::grow() {
  std::vector<Slot> larger(table_.size() * 2);
  const size_t mask = larger.size() - 1;
  for (const Slot& slot : table_) {
    if (slot.generation != generation_) continue;
    size_t at = slot.value->hash & mask;
    while (larger[at].generation == generation_) at = (at + 1) & mask;
    larger[at] = slot;
  }
  table_.swap(larger);
}

namespace {
size_t hash_node(const ExprNode* node, uint32_t context) {
  return ((reinterpret_cast<uintptr_t>(node) >> 4) + uint64_t{context} * 0xD6E8FEB86659FD93ull) *
             0x9E3779B97F4A7C15ull >>
         20;
}
}  // namespace

Value* Store::find_result(const ExprNode* node, uint32_t context) const {
  const size_t mask = results_.size() - 1;
  for (size_t at = hash_node(node, context) & mask; results_[at].generation == generation_; at = (at + 1) & mask)
    if (results_[at].node == node && results_[at].context == context) return results_[at].value;
  return nullptr;
}

void Store::remember_result(const ExprNode* node, uint32_t context, Value* value) {
  const size_t mask = results_.size() - 1;
  size_t at = hash_node(node, context) & mask;
  while (results_[at].generation == generation_ && !(results_[at].node == node && results_[at].context == context))
    at = (at + 1) & mask;
  const bool is_new = results_[at].generation != generation_;
  results_[at] = {node, value, context, generation_};
  if (is_new && ++num_results_ * 2 > results_.size()) grow_results();
}

void Store::grow_results() {
  std::vector<ResultSlot> larger(results_.size() * 2);
  const size_t mask = larger.size() - 1;
  for (const ResultSlot& slot : results_) {
    if (slot.generation != generation_) continue;
    size_t at = hash_node(slot.node, slot.context) & mask;
    while (larger[at].generation == generation_) at = (at + 1) & mask;
    larger[at] = slot;
  }
  results_.swap(larger);
}

const ExprNode* Store::keep(Expr e) {
  const ExprNode* node = e.get();
  kept_.push_back(std::move(e));
  return node;
}

}  // namespace tensmith::simplifier
