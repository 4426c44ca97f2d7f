/// The weights of a compiled model: constants of the graph and the layouts that kernels want them in.
#pragma once

#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "apps/driver/huge_pages.h"
#include "graph/constant.h"
#include "tensor/layout.h"

namespace tensmith {

/// Packs weights when they are asked for: all of them into memory, for code that runs in this process, or piece by
/// piece into a file, which takes no memory for a second set of them. Threads: any number at a time.
class ProgramWeights {
 public:
  /// One packed constant. Units: bytes.
  struct Piece {
    graph::Constant constant;
    Layout layout;
    int64_t offset = 0;
  };

  /// Pieces in the order of their offsets, within `size` bytes.
  ProgramWeights(std::vector<Piece> pieces, int64_t size);

  int64_t size() const { return size_; }
  /// All weights, packed at the first call and kept from then on in place of the constants. Cost: about a copy.
  const WeightBytes& bytes() const;
  /// Gives all bytes in order, in pieces that are only valid during the call. Holds one packed piece at a time.
  void for_each(const std::function<void(std::span<const uint8_t>)>& take) const;
  /// The same, and lets go of each constant once it is given: nothing can be asked of the weights afterwards.
  void for_each_at_last(const std::function<void(std::span<const uint8_t>)>& take);

 private:
  using Take = std::function<void(std::span<const uint8_t>)>;
  /// All bytes with `after` called behind each piece. Requires: mutex_ is held and nothing is packed.
  void give_pieces(const Take& take, const std::function<void(size_t piece)>& after) const;

  const int64_t size_;
  mutable std::mutex mutex_;
  // The same weights in one form or the other: `bytes` replaces the first by the second.
  mutable std::vector<Piece> pieces_;
  mutable WeightBytes bytes_;
  bool is_gone_ = false;
};

}  // namespace tensmith
