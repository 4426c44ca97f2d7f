#include "tests/support/run_text.h"

#include <gtest/gtest.h>

#include "tensor/parse.h"

namespace tensmith {

InterpValue float_values(DType dtype, std::vector<double> values) { return {dtype, std::move(values), {}}; }
InterpValue int_values(DType dtype, std::vector<int64_t> values) { return {dtype, {}, std::move(values)}; }

Result<void> run_text(const std::string& text, const std::vector<InterpValue*>& buffers,
                      const std::vector<int64_t>& scalars, InterpFloat mode, int64_t max_steps) {
  const Result<LoopProgram> program = parse_program(text);
  if (!program.ok()) {
    ADD_FAILURE() << program.failure().message << "\n" << text;
    return program.failure();
  }
  return interpret(*program, buffers, scalars, mode, max_steps);
}

namespace {

InterpValue value_of(const std::string& dtype, const std::string& expression, int lanes, InterpFloat mode) {
  InterpValue out = make_interp_value(parse_dtype(dtype).value(), lanes);
  const std::string count = std::to_string(lanes);
  const std::string index = lanes == 1 ? "0" : "ramp(0, 1, " + count + ")";
  const Result<void> ran = run_text(
      "func f(out: " + dtype + "[" + count + "]) -> out { out[" + index + "] = " + expression + " }", {&out}, {}, mode);
  EXPECT_TRUE(ran.ok()) << expression << ": " << (ran.ok() ? "" : ran.failure().message);
  return out;
}

}  // namespace

std::vector<double> floats_of(const std::string& dtype, const std::string& expression, int lanes, InterpFloat mode) {
  return value_of(dtype, expression, lanes, mode).f;
}

std::vector<int64_t> ints_of(const std::string& dtype, const std::string& expression, int lanes, InterpFloat mode) {
  return value_of(dtype, expression, lanes, mode).i;
}

}  // namespace tensmith
