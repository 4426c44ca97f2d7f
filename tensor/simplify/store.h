/// Memory of one simplification: the arena of values, the table that shares equal ones, and the results by input node.
#pragma once

#include <memory>
#include <vector>

#include "tensor/simplify/value.h"

namespace tensmith::simplifier {

class Store {
 public:
  Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// A cleared store of this thread; stores are kept for reuse because most calls are tiny and would pay for the
  /// set-up.
  static std::unique_ptr<Store> acquire();
  static void release(std::unique_ptr<Store> store);

  /// The value with the structure of `probe` (whose arrays may be temporary); `*is_new` says whether it was made now.
  Value* intern(const Value& probe, bool* is_new);
  /// A value of its own that never equals another.
  Value* unique(const Value& probe);

  /// The remembered result for an input node in a context, or null.
  Value* find_result(const ExprNode* node, uint32_t context) const;
  void remember_result(const ExprNode* node, uint32_t context, Value* value);

  /// Keeps a node alive as long as the store is in use.
  const ExprNode* keep(Expr e);

 private:
  struct Slot {
    Value* value = nullptr;
    uint32_t generation = 0;
  };
  struct ResultSlot {
    const ExprNode* node = nullptr;
    Value* value = nullptr;
    uint32_t context = 0, generation = 0;
  };

  void clear();
  void* allocate(size_t bytes);
  Value* copy(const Value& probe);
  void grow();
  void grow_results();

  // Slots of an older generation count as empty, so clearing does not touch the tables.
  uint32_t generation_ = 1;
  std::vector<Slot> table_;
  std::vector<ResultSlot> results_;
  size_t num_values_ = 0, num_results_ = 0;
  uint32_t next_id_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  size_t chunk_ = 0, offset_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> large_;  // arrays longer than a chunk
  std::vector<Expr> kept_;
};

}  // namespace tensmith::simplifier
