#include "codegen/llvm_interleave.h"

#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codegen/llvm_target.h"

namespace tensmith {

namespace {

using llvm::Instruction;

// Shorter chains overlap by themselves; with more shared values than this the copies are no elementwise work but, say,
// the rows of a window, whose order was chosen.
constexpr int kMinDepth = 12;
constexpr int kMaxShared = 6;
constexpr size_t kMaxInstructions = 4000;
constexpr int kMaxTogether = 4;

/// What belongs to one store alone, in the order of the program, the store last.
using Copy = std::vector<Instruction*>;

bool is_vector(const Instruction* i) { return i->getType()->isVectorTy(); }

/// Addresses: folded into their uses, so it does not matter where they stand.
bool is_address(const Instruction* i) { return llvm::isa<llvm::GetElementPtrInst>(i); }

class BlockOrder {
 public:
  BlockOrder(llvm::BasicBlock& block, llvm::AAResults& aliases, const Target& target)
      : block_(block), aliases_(aliases), target_(target), mask_registers_(isa_of(target).avx512) {}

  bool run() {
    if (!collect() || !find_copies()) return false;
    bool changed = false;
    for (size_t begin = 0; begin < copies_.size();) {
      const size_t end = end_of_group(begin);
      changed = changed || end - begin > 1;
      groups_.push_back({begin, end});
      begin = end;
    }
    if (!changed) return false;
    place();
    if (!is_legal()) return false;
    for (Instruction* i : order_) i->moveBefore(block_.getTerminator());
    return true;
  }

 private:
  struct Group {
    size_t begin, end;
  };

  bool collect() {
    for (Instruction& i : block_) {
      if (llvm::isa<llvm::PHINode>(i) || i.isTerminator()) continue;
      number_[&i] = static_cast<int>(program_.size());
      program_.push_back(&i);
      if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&i)) {
        if (!store->isSimple() || !store->getValueOperand()->getType()->isVectorTy()) return false;
        stores_.push_back(&i);
      } else if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&i)) {
        if (!load->isSimple()) return false;
      } else if (i.mayReadOrWriteMemory() || i.mayHaveSideEffects()) {
        return false;
      }
      if (program_.size() > kMaxInstructions) return false;
    }
    return stores_.size() > 1;
  }

  /// Calls `fn` for the operands that this block computes.
  template <typename F>
  void each_operand(const Instruction* i, const F& fn) const {
    for (const llvm::Use& use : i->operands()) {
      auto* operand = llvm::dyn_cast<Instruction>(use.get());
      if (operand && number_.count(operand)) fn(operand);
    }
  }

  bool find_copies() {
    std::unordered_map<Instruction*, int> owners;  // how many stores need it
    std::vector<std::vector<Instruction*>> slices;
    size_t work = 0;
    for (Instruction* store : stores_) {
      std::unordered_set<Instruction*> seen{store};
      std::vector<Instruction*> slice{store};
      for (size_t next = 0; next < slice.size(); ++next)
        each_operand(slice[next], [&](Instruction* operand) {
          if (seen.insert(operand).second) slice.push_back(operand);
        });
      work += slice.size();
      if (work > 4 * kMaxInstructions) return false;
      for (Instruction* i : slice) ++owners[i];
      slices.push_back(std::move(slice));
    }
    int shared = 0;
    for (const auto& [instruction, count] : owners) shared += count > 1 && is_vector(instruction);
    if (shared > kMaxShared) return false;
    for (std::vector<Instruction*>& slice : slices) {
      Copy copy;
      for (Instruction* i : slice)
        if (owners[i] == 1 && !is_address(i)) copy.push_back(i);
      std::sort(copy.begin(), copy.end(),
                [&](Instruction* a, Instruction* b) { return number_.at(a) < number_.at(b); });
      for (Instruction* i : copy) copy_of_[i] = static_cast<int>(copies_.size());
      copies_.push_back(std::move(copy));
    }
    for (Instruction* i : program_) {
      const auto it = owners.find(i);
      if (it != owners.end() && (it->second > 1 || is_address(i))) order_.push_back(i);
    }
    return true;
  }

  int depth(const Copy& copy) const {
    std::unordered_map<const Instruction*, int> depths;
    int most = 0;
    for (const Instruction* i : copy) {
      int above = 0;
      each_operand(i, [&](const Instruction* operand) {
        if (auto it = depths.find(operand); it != depths.end()) above = std::max(above, it->second);
      });
      most = std::max(most, depths[i] = above + 1);
    }
    return most;
  }

  /// How many vector registers hold the value.
  int registers(const llvm::Value* value) const {
    auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
    if (!type || llvm::isa<llvm::BitCastInst>(value)) return 0;  // the same bits by another name
    const int bits = static_cast<int>(type->getPrimitiveSizeInBits());
    if (!type->getElementType()->isIntegerTy(1)) return (bits + target_.vector_bits - 1) / target_.vector_bits;
    return mask_registers_ ? 0 : 1;
  }

  /// The most registers that values of the copy's own take at a time.
  int most_alive(const Copy& copy) const {
    std::unordered_map<const Instruction*, size_t> last_use;
    for (size_t k = 0; k < copy.size(); ++k)
      each_operand(copy[k], [&](const Instruction* operand) { last_use[operand] = k; });
    int alive = 0, most = 0;
    for (size_t k = 0; k < copy.size(); ++k) {
      std::unordered_set<const Instruction*> ended;
      each_operand(copy[k], [&](const Instruction* operand) {
        if (copy_of_.count(operand) && last_use[operand] == k) ended.insert(operand);
      });
      for (const Instruction* operand : ended) alive -= registers(operand);
      if (last_use.count(copy[k])) alive += registers(copy[k]);
      most = std::max(most, alive);
    }
    return most;
  }

  /// Registers of what comes from outside the copies, constants apart, which can be read from memory.
  int incoming() const {
    std::unordered_set<const llvm::Value*> values;
    for (const Instruction* i : program_) {
      for (const llvm::Use& use : i->operands()) {
        const auto* operand = llvm::dyn_cast<Instruction>(use.get());
        if (!llvm::isa<llvm::Constant>(use.get()) && !(operand && copy_of_.count(operand))) values.insert(use.get());
      }
    }
    int sum = 0;
    for (const llvm::Value* value : values) sum += registers(value);
    return sum;
  }

  static bool same_shape(const Copy& a, const Copy& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Instruction* x, const Instruction* y) {
      auto *call = llvm::dyn_cast<llvm::CallInst>(x), *other = llvm::dyn_cast<llvm::CallInst>(y);
      return x->getOpcode() == y->getOpcode() && x->getType() == y->getType() &&
             (!call || call->getCalledOperand() == other->getCalledOperand());
    });
  }

  /// How many of the copies from `begin` on, all of one shape, run in turn.
  size_t end_of_group(size_t begin) const {
    const Copy& first = copies_[begin];
    if (depth(first) < kMinDepth) return begin + 1;
    size_t alike = 1;
    while (begin + alike < copies_.size() && same_shape(first, copies_[begin + alike])) ++alike;
    // Twice what the registers hold still gains: what does not fit is read from the stack beside the arithmetic.
    const int room = 2 * (target_.vector_registers - incoming()), each = std::max(most_alive(first), 1);
    const size_t most = std::clamp((room + each / 2) / each, 1, kMaxTogether);
    const size_t groups = (alike + most - 1) / most;
    return begin + (alike + groups - 1) / groups;
  }

  /// The new order: addresses and shared values, then each group with what only follows from it.
  void place() {
    std::unordered_map<const Instruction*, size_t> group_of;
    for (size_t g = 0; g < groups_.size(); ++g)
      for (size_t c = groups_[g].begin; c < groups_[g].end; ++c)
        for (const Instruction* i : copies_[c]) group_of[i] = g;
    std::unordered_set<const Instruction*> placed(order_.begin(), order_.end());
    std::vector<std::vector<Instruction*>> after(groups_.size());
    for (Instruction* i : program_) {
      if (placed.count(i) || copy_of_.count(i)) continue;
      size_t group = 0;
      each_operand(i, [&](const Instruction* operand) {
        if (auto it = group_of.find(operand); it != group_of.end()) group = std::max(group, it->second);
      });
      group_of[i] = group;
      after[group].push_back(i);
    }
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (size_t step = 0; step < copies_[groups_[g].begin].size(); ++step)
        for (size_t c = groups_[g].begin; c < groups_[g].end; ++c) order_.push_back(copies_[c][step]);
      order_.insert(order_.end(), after[g].begin(), after[g].end());
    }
  }

  /// Whether every value stands before its uses and no access passes one that may be of the same memory.
  bool is_legal() const {
    if (order_.size() != program_.size()) return false;
    std::unordered_map<const Instruction*, size_t> position;
    std::vector<Instruction*> accesses;
    for (size_t k = 0; k < order_.size(); ++k) {
      bool ready = true;
      each_operand(order_[k], [&](const Instruction* operand) { ready = ready && position.count(operand); });
      if (!ready) return false;
      position[order_[k]] = k;
      if (llvm::isa<llvm::LoadInst, llvm::StoreInst>(order_[k])) accesses.push_back(order_[k]);
    }
    for (size_t b = 0; b < accesses.size(); ++b) {
      for (size_t a = 0; a < b; ++a) {
        if (number_.at(accesses[a]) < number_.at(accesses[b])) continue;  // as before
        if (llvm::isa<llvm::LoadInst>(accesses[a]) && llvm::isa<llvm::LoadInst>(accesses[b])) continue;
        if (!aliases_.isNoAlias(llvm::MemoryLocation::get(accesses[a]), llvm::MemoryLocation::get(accesses[b])))
          return false;
      }
    }
    return true;
  }

  llvm::BasicBlock& block_;
  llvm::AAResults& aliases_;
  const Target& target_;
  const bool mask_registers_;  // comparisons of vectors live in registers of their own
  std::vector<Instruction*> program_, stores_, order_;
  std::unordered_map<const Instruction*, int> number_;   // in program_
  std::unordered_map<const Instruction*, int> copy_of_;  // in copies_
  std::vector<Copy> copies_;
  std::vector<Group> groups_;
};

}  // namespace

bool interleave_copies(llvm::Function& function, llvm::AAResults& aliases, const Target& target) {
  bool any = false;
  for (llvm::BasicBlock& block : function) any |= BlockOrder(block, aliases, target).run();
  return any;
}

}  // namespace tensmith
