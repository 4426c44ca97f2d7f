/// Runs the interpreter's instructions.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "runtime/base/result.h"
#include "tensor/interpreter/code.h"

namespace tensmith::interp {

/// Memory that exists: a parameter of the outermost function, or an allocation. A cell is an element of the type the
/// memory was made with.
struct Memory {
  Cell* base = nullptr;
  int64_t cells = 0;
  DType dtype;
  std::unique_ptr<Cell[]> owned;  ///< of allocations
  int64_t capacity = 0;           ///< of `owned`
};

/// How a function sees a buffer. A view of memory of a smaller type (an arena of bytes) uses every `scale`-th cell, so
/// that its element k and the byte at its address share a cell.
struct View {
  Cell* base = nullptr;
  int64_t size = 0;   ///< Units: elements of the shape
  int64_t scale = 1;  ///< Units: cells an element
  int64_t memory = 0;
  int64_t offset = 0;                 ///< of `base` in the memory; Units: cells
  const int64_t* geometry = nullptr;  ///< extents, then strides
};

/// The element that an access means, `cells` being cell 0 of the frame plus the lane; false when it lies outside.
inline bool find(const View& view, const Access& access, const int32_t* index, const Cell* cells, int64_t* element) {
  if (access.rank == 1) {  // also a flat index
    *element = cells[index[0]].i;
    return static_cast<uint64_t>(*element) < static_cast<uint64_t>(view.size);
  }
  int64_t sum = 0;
  bool inside = true;
  for (int32_t d = 0; d < access.rank; ++d) {
    const int64_t i = cells[index[d]].i;
    inside &= static_cast<uint64_t>(i) < static_cast<uint64_t>(view.geometry[d]);
    sum = static_cast<int64_t>(static_cast<uint64_t>(sum) +
                               static_cast<uint64_t>(i) * static_cast<uint64_t>(view.geometry[access.rank + d]));
  }
  *element = sum;
  return inside;
}

/// Runs compiled functions on one stack of memories.
class Machine {
 public:
  Machine(const std::vector<Code>& codes, int64_t max_steps) : codes_(codes), max_steps_(max_steps) {
    memories_.emplace_back();
  }

  /// Gives the number by which handles name the memory (never 0).
  int64_t add_memory(Memory memory);
  /// A handle of a place in a memory.
  static int64_t handle(int64_t memory, int64_t offset) { return memory << kOffsetBits | offset; }
  /// Runs a function on handles of its buffers, then scalars. Gives the code of the assertion that ended it, 0 at its
  /// end, nothing when `failure()` says why it could not go on.
  std::optional<int> call(int function, const std::vector<Cell>& arguments);
  const Failure& failure() const { return failure_; }
  /// Which assertion gave the last code other than 0.
  const std::string& assert_text() const { return assert_text_; }

 private:
  static constexpr int kOffsetBits = 40;
  static constexpr int kMaxCalls = 200;                   ///< functions that wait for each other's end
  static constexpr int64_t kMaxCells = int64_t{1} << 28;  ///< of all allocations together: 2 GiB

  struct Frame {
    const Code* code;
    Cell* r;  ///< cell 0
    std::vector<View> views;
    std::vector<int64_t> geometry;
  };

  std::optional<int> run(Frame& frame);
  bool load_masked(Frame& frame, const Inst& inst);
  bool store_masked(Frame& frame, const Inst& inst);
  bool address(Frame& frame, const Inst& inst);
  bool shape(Frame& frame, int32_t buffer, int64_t* elements);
  bool bind(Frame& frame, int32_t buffer);
  bool allocate(Frame& frame, int32_t buffer);
  void free();

  // What went wrong goes into failure_; each gives nothing.
  std::nullopt_t fail(const char* id, const Frame& frame, const std::string& message);
  std::nullopt_t too_many_steps(const Frame& frame);
  std::nullopt_t bad_index(const Frame& frame, int32_t buffer, int64_t element);
  std::nullopt_t bad_index(const Frame& frame, int32_t buffer, int64_t first, int64_t second);
  std::nullopt_t bad_index(const Frame& frame, const Access& access, int lane);
  std::nullopt_t bad_index(const Frame& frame, int32_t buffer, const std::string& index);

  const std::vector<Code>& codes_;
  int64_t max_steps_;
  int64_t steps_ = 0;
  int64_t cells_ = 0;
  int calls_ = 0;
  std::vector<Memory> memories_;
  std::vector<std::pair<int64_t, std::unique_ptr<Cell[]>>>
      spare_;  ///< ended allocations, for the next of about that size
  Failure failure_;
  std::string assert_text_;  ///< of the assertion that ended the last function
};

}  // namespace tensmith::interp
