#include "codegen/llvm_registers.h"

#include <llvm/IR/Module.h>

#include <algorithm>
#include <set>

#include "tensor/equal_hash.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

// Index expressions of a register tile are constant after unrolling, though perhaps not folded to one node.
bool constant_value(const Expr& e, int64_t* value) {
  if (as_const_int(e, value)) return true;
  const Binary* op = e.as<Binary>();
  int64_t a = 0, b = 0;
  if (!op || !e.dtype().is_scalar() || !constant_value(op->a, &a) || !constant_value(op->b, &b)) return false;
  switch (op->op) {
    case BinaryOp::kAdd: return *value = a + b, true;
    case BinaryOp::kSub: return *value = a - b, true;
    case BinaryOp::kMul: return *value = a * b, true;
    default: return false;
  }
}

std::string describe(const Buffer& buffer, RegisterAccess access) {
  return buffer->name + "[" + std::to_string(access.offset) + ".." + std::to_string(access.offset + access.lanes) + ")";
}

}  // namespace

RegisterAccess register_access(const Buffer& buffer, const Expr& index) {
  RegisterAccess access{0, 1};
  const Ramp* ramp = index.as<Ramp>();
  const Broadcast* broadcast = index.as<Broadcast>();
  bool constant = false;
  if (ramp && is_const_int(ramp->stride, 1)) {
    access.lanes = ramp->lanes;
    constant = constant_value(ramp->base, &access.offset);
  } else {
    constant = constant_value(broadcast ? broadcast->value : index, &access.offset);
  }
  if (!constant)
    throw ScheduleError("register-index",
                        "codegen: register buffer " + buffer->name +
                            ": expected constant indices of stride 1 after unrolling and vectorising, got another "
                            "index; unroll the loops around it or keep the buffer on the stack");
  return access;
}

RegisterTile::RegisterTile(const Buffer& buffer, const Stmt& body, LlvmValues& values, llvm::BasicBlock* entry)
    : buffer_(buffer) {
  std::vector<RegisterAccess> accesses;
  std::set<std::pair<int64_t, int>> seen;
  std::vector<std::pair<RegisterAccess, Expr>> masks;
  auto add = [&](const Buffer& used, const std::vector<Expr>& indices, const Expr& predicate) {
    if (!used.same_as(buffer)) return;
    TS_CHECK(indices.size() == 1) << buffer->name << " is not flat";
    RegisterAccess access = register_access(buffer, indices[0]);
    if (seen.insert({access.offset, access.lanes}).second) accesses.push_back(access);
    masks.emplace_back(access, predicate);
  };
  visit(
      body,
      [&](const Stmt& s) {
        if (auto* store = s.as<Store>()) add(store->buffer, store->indices, store->predicate);
        return true;
      },
      [&](const Expr& e) {
        if (auto* load = e.as<Load>()) add(load->buffer, load->indices, load->predicate);
        return true;
      });
  // Largest first, so that a contained access finds its slot; ties by offset to be deterministic.
  std::sort(accesses.begin(), accesses.end(), [](const RegisterAccess& a, const RegisterAccess& b) {
    return a.lanes != b.lanes ? a.lanes > b.lanes : a.offset < b.offset;
  });
  LlvmBuilder alloca_builder(entry->getContext(), llvm::TargetFolder(entry->getModule()->getDataLayout()));
  alloca_builder.SetInsertPoint(entry);
  for (const RegisterAccess& access : accesses) {
    const int64_t end = access.offset + access.lanes;
    auto next = slots_.upper_bound(access.offset);
    if (next != slots_.begin()) {
      auto& [first, slot] = *std::prev(next);
      if (first <= access.offset && end <= first + slot.lanes) continue;
      if (access.offset < first + slot.lanes) next = std::prev(next);
    }
    if (next != slots_.end() && next->first < end)
      throw ScheduleError("register-overlap", "codegen: register buffer " + buffer->name +
                                                  ": expected accesses that are equal, disjoint or "
                                                  "one inside the other, got " +
                                                  describe(buffer, access) + " beside " +
                                                  describe(buffer, {next->first, next->second.lanes}) +
                                                  "; vectorize all loops over it by the same factor");
    llvm::Type* type = values.type(buffer->dtype.with_lanes(access.lanes));
    slots_.emplace(access.offset, Slot{access.lanes, alloca_builder.CreateAlloca(type, nullptr, buffer->name)});
  }
  for (const auto& [access, predicate] : masks) {
    const auto& [first, slot] = slot_of(access);
    const auto [known, fresh] = masks_.try_emplace(first, predicate);
    const bool constant = predicate.get() && collect_vars(predicate).empty() && slot.lanes == access.lanes;
    if (!constant || (!fresh && !(known->second.get() && equal(known->second, predicate)))) known->second = Expr();
  }
}

bool RegisterTile::has_unseen_lanes(RegisterAccess access) const { return masks_.at(slot_of(access).first).get(); }

const std::pair<const int64_t, RegisterTile::Slot>& RegisterTile::slot_of(RegisterAccess access) const {
  auto next = slots_.upper_bound(access.offset);
  TS_CHECK(next != slots_.begin()) << describe(buffer_, access);
  const auto& slot = *std::prev(next);
  TS_CHECK(access.offset + access.lanes <= slot.first + slot.second.lanes) << describe(buffer_, access);
  return slot;
}

llvm::Value* RegisterTile::load(LlvmValues& values, RegisterAccess access) const {
  const auto& [first, slot] = slot_of(access);
  llvm::Value* whole = values.builder().CreateLoad(slot.storage->getAllocatedType(), slot.storage);
  return slot.lanes == 1 ? whole : values.slice(whole, static_cast<int>(access.offset - first), access.lanes);
}

void RegisterTile::store(LlvmValues& values, RegisterAccess access, llvm::Value* value) const {
  const auto& [first, slot] = slot_of(access);
  if (slot.lanes != access.lanes) {
    llvm::Value* whole = values.builder().CreateLoad(slot.storage->getAllocatedType(), slot.storage);
    value = values.insert(whole, value, static_cast<int>(access.offset - first));
  }
  values.builder().CreateStore(value, slot.storage);
}

}  // namespace tensmith
