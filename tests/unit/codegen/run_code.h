/// Compiling and running loop IR in tests: buffers as numbers, on every instruction set that this machine has.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "codegen/artifact.h"
#include "codegen/jit.h"
#include "runtime/context.h"
#include "tensor/interpret.h"

namespace tensmith {

/// The oldest level, the one with FMA and half conversions, and "host", as far as this machine can run them.
std::vector<std::string> runnable_targets();
/// A name that GoogleTest accepts.
std::string test_name(const std::string& target);

/// Bytes in memory of the elements, each converted by the type's rules.
std::vector<uint8_t> to_bytes(const InterpValue& value);
void from_bytes(const std::vector<uint8_t>& bytes, InterpValue* value);
/// Values that are exact in the type: floats are rounded, integers wrapped.
InterpValue values(DType type, const std::vector<double>& numbers);
InterpValue int_values(DType type, const std::vector<int64_t>& numbers);

/// Compiles, loads and runs the function on copies of the buffers and writes them back; returns its result.
int32_t run_code(const LoopFunction& f, const std::string& target, const std::vector<InterpValue*>& buffers,
                 const std::vector<int64_t>& scalars = {}, const tensmith_context* ctx = nullptr,
                 const CodegenOptions& options = {});
int32_t run_code(const LoopProgram& program, const std::string& target, const std::vector<InterpValue*>& buffers,
                 const std::vector<int64_t>& scalars = {}, const tensmith_context* ctx = nullptr,
                 const CodegenOptions& options = {});

/// `out[i] = body(in0[i], in1[i], ...)` over all elements, `lanes` at a time; the number of elements is a multiple of
/// lanes.
InterpValue map_elements(const std::string& target, const std::vector<InterpValue>& inputs, DType out, int lanes,
                         const std::function<Expr(const std::vector<Expr>&)>& body, const CodegenOptions& options = {});

/// Fails unless equal element by element, NaN being equal to NaN, and -0 different from +0.
void expect_equal(const InterpValue& got, const InterpValue& want, const std::string& what);

}  // namespace tensmith
