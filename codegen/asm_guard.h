/// A static check of generated assembly: does the hot loop consist of full-width arithmetic, without spills and calls?
///
/// It rejects bad candidates without running them: a spilled register tile, vectors split in halves, a loop vectorised
/// by gathers and fmaf calls each cost a factor of two to fifty, and each shows in the text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tensmith {

/// What an innermost loop holds. All counts are instructions, of all blocks that belong to the loop.
struct AsmLoop {
  std::string label;   ///< of its header
  int first_line = 0;  ///< of its instructions in the text, counted from 1
  int last_line = 0;
  int instructions = 0;
  int fmas = 0;  ///< fused multiply-adds and dot products on vectors
  int scalar_fmas = 0;
  int stack_references = 0;  ///< memory operands relative to the stack or frame pointer, pushes and pops
  int vector_spills = 0;     ///< those of them that move or read a vector register: values, not addresses
  int gathers = 0;
  int scatters = 0;
  int calls = 0;
  int vector_bits = 0;  ///< width that most FMAs have; without FMAs the widest vector register; 0 for scalar code
  int narrow_fmas = 0;  ///< FMAs of less than that width

  double fma_share() const { return instructions ? static_cast<double>(fmas) / instructions : 0; }
};

/// One function of the text.
struct AsmFunction {
  std::string name;
  std::vector<AsmLoop> loops;        ///< innermost ones, in order of their headers
  int calls = 0;                     ///< anywhere in the function
  std::vector<std::string> callees;  ///< names of those that are called directly, each once, sorted
  int hot = -1;  ///< index of the loop with the most FMAs (of equal ones, the most instructions); -1: no loop

  const AsmLoop* hot_loop() const { return hot < 0 ? nullptr : &loops[hot]; }
};

/// Reads assembly as LLVM prints it: x86-64 in AT&T syntax or AArch64, told apart by the operands. Instructions that it
/// does not know count as instructions. Never fails: text that is no assembly has no functions. Cost: linear in the
/// text.
std::vector<AsmFunction> inspect_assembly(std::string_view text);

/// What a hot loop must be like. The defaults are those of a register tile.
struct AsmRequirements {
  int vector_bits = 0;         ///< width of its FMAs, e.g. Target::vector_bits; 0: any
  double min_fma_share = 0.5;  ///< 0 for loops that are not dense products
  int max_stack_references = 0;
  bool allow_calls = false;
  bool allow_gathers = false;  ///< and scatters
};

/// Empty when the loop is as required, otherwise one reason each, such as
/// `hot loop .LBB0_2: stack references: expected at most 0, got 12`.
std::vector<std::string> asm_problems(const AsmFunction& function, const AsmRequirements& requirements = {});

}  // namespace tensmith
