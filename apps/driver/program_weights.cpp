#include "apps/driver/program_weights.h"

#include <algorithm>
#include <utility>

#include "apps/driver/pack.h"
#include "runtime/base/error.h"

namespace tensmith {

namespace {

bool lies_as_it_is(const graph::Constant& constant, const Layout& layout) {
  return (layout.dims().empty() || layout.is_row_major()) && packed_bytes(constant, layout) == constant.num_bytes();
}

}  // namespace

ProgramWeights::ProgramWeights(std::vector<Piece> pieces, int64_t size) : size_(size), pieces_(std::move(pieces)) {
  int64_t end = 0;
  for (const Piece& piece : pieces_) {
    TS_CHECK(piece.offset >= end) << piece.offset << " after " << end;
    end = piece.offset + packed_bytes(piece.constant, piece.layout);
  }
  TS_CHECK(end <= size_) << end << " of " << size_;
}

const WeightBytes& ProgramWeights::bytes() const {
  const std::lock_guard lock(mutex_);
  TS_CHECK(!is_gone_) << "weights are asked for after their last use";
  if (bytes_.empty() && size_ > 0) {
    bytes_.resize(static_cast<size_t>(size_));
    for (const Piece& piece : pieces_) pack(piece.constant, piece.layout, bytes_.data() + piece.offset);
    pieces_.clear();
  }
  return bytes_;
}

void ProgramWeights::for_each(const Take& take) const {
  const std::lock_guard lock(mutex_);
  TS_CHECK(!is_gone_) << "weights are asked for after their last use";
  if (!bytes_.empty()) take(bytes_);
  else give_pieces(take, [](size_t) {});
}

void ProgramWeights::for_each_at_last(const Take& take) {
  const std::lock_guard lock(mutex_);
  TS_CHECK(!is_gone_) << "weights are asked for after their last use";
  is_gone_ = true;
  if (!bytes_.empty()) take(std::exchange(bytes_, {}));
  else give_pieces(take, [&](size_t piece) { pieces_[piece].constant = {}; });
}

void ProgramWeights::give_pieces(const Take& take, const std::function<void(size_t piece)>& after) const {
  static constexpr uint8_t kZeros[4096] = {};
  WeightBytes packed;
  int64_t at = 0;
  const auto fill_up_to = [&](int64_t offset) {
    while (at < offset) {
      const int64_t count = std::min<int64_t>(offset - at, sizeof kZeros);
      take({kZeros, static_cast<size_t>(count)});
      at += count;
    }
  };
  for (size_t k = 0; k < pieces_.size(); ++k) {
    const Piece& piece = pieces_[k];
    fill_up_to(piece.offset);
    const auto count = static_cast<size_t>(packed_bytes(piece.constant, piece.layout));
    if (lies_as_it_is(piece.constant, piece.layout)) {
      take({static_cast<const uint8_t*>(piece.constant.data()), count});
    } else {
      if (packed.size() < count) packed.resize(count);
      pack(piece.constant, piece.layout, packed.data());
      take({packed.data(), count});
    }
    at += static_cast<int64_t>(count);
    after(k);
  }
  fill_up_to(size_);
}

}  // namespace tensmith
