/// A kernel's loops as numbers: extents, how often guards let a statement run, strides of accesses, operations. What
/// the features and the analytic model are computed from.
///
/// It is read before vectorized and unrolled loops are written out: there, each statement of the schedule is one
/// statement with its loops around it (a 14x32 tile is one store in three loops instead of 28 stores), strides are
/// exact, and reading costs some ten microseconds whatever the unrolling; the code behind it may have 5,000 statements.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/target.h"
#include "schedule/schedule.h"
#include "tensor/stmt.h"

namespace tensmith {

/// A loop, or one digit of a fused loop whose variable is taken apart again by `/` and `%`.
struct TreeLoop {
  int parent = -1;  ///< by number; -1: the root
  int depth = 0;    ///< 0: the root, which stands for the kernel and runs once
  ForKind kind = ForKind::kSerial;
  double extent = 1;  ///< turns for each turn of the parent; the mean where it varies
  double run = 1;     ///< turns of the thread that has most of them; `extent` but for what is shared out
  double chance = 1;  ///< share of the parent's turns that reach it
  /// Whole extent of the fused loop, on its outermost digit of what is shared out between threads; 0 elsewhere.
  double shared_out = 0;
};

struct TreeBuffer {
  double bytes = 0;
  int64_t element_bytes = 4;
  Scope scope = Scope::kGlobal;
  bool is_parameter = false, is_written = false;
  int loop = 0;  ///< inside which it lives
};

/// One access of a statement.
struct TreeAccess {
  int buffer = 0;
  bool is_write = false, is_prefetch = false;
  bool is_opaque = false;  ///< somewhere in the buffer: the index is loaded
  double offset = 0;       ///< Units: elements, with all loops at their start
  /// Units: elements, by the depth of the loop; one entry a loop from the root to the statement.
  std::vector<double> strides;
  uint64_t loops = 0;  ///< that the address depends on, by depth as bits
};

enum class OpKind : uint8_t {
  kFma,
  kAdd,  ///< also subtract, minimum, maximum
  kMul,
  kDivide,   ///< also square roots
  kSpecial,  ///< exp, tanh, ...; counted in the instructions that they take
  kInteger,
  kSelect,  ///< also comparisons and logic
  kConvert,
  kReduceLanes,  ///< of one vector to a scalar
};
inline constexpr int kOpKinds = 9;

/// An operation or a read of memory with the loops that it depends on, by depth as bits; it runs once for all turns of
/// the loops inside of them.
struct TreeOp {
  OpKind kind = OpKind::kAdd;
  uint64_t loops = 0;
  int64_t element_bytes = 4;
  double count = 1;
};

/// A store, or an evaluation such as a prefetch.
struct TreeStore {
  int loop = 0;                      ///< the innermost around it
  double chance = 1;                 ///< share of the turns of that loop that run it
  int guards = 0;                    ///< conditions between it and the innermost serial loop
  bool has_vector_guard = false;     ///< some of them differ by lane
  bool accumulates = false;          ///< it reads the element that it writes
  std::vector<TreeAccess> accesses;  ///< reads, then the write; each address once
  std::vector<TreeOp> ops;
};

struct LoopTree {
  std::vector<TreeLoop> loops;  ///< parents first
  std::vector<TreeBuffer> buffers;
  std::vector<TreeStore> stores;  ///< in the order of the program
  int threads = 1;

  /// Loops from the root to `loop`, which is the last.
  std::vector<int> path(int loop) const;
};

/// The loops of a schedule, lowered just so far. Errors: those of `lower`.
/// Cost: 0.2 to 1 ms, nearly all of it lowering.
LoopFunction nests_of(const Schedule& schedule);

/// Reads a function as `nests_of` gives it. Symbolic extents count as 64, and so does what a While runs.
LoopTree read_loop_tree(const LoopFunction& function, int threads);

}  // namespace tensmith
