/// Tasks, kernels made by hand and broken kernels for the tests of measuring.
#pragma once

#include <string>
#include <vector>

#include "autotune/measure/session.h"

namespace tensmith {

/// A session with the test's own worker, one builder, one runner and short limits.
SessionOptions test_session_options();

/// `C = A * B`; B is constant.
MeasureTask matmul_task(int64_t m, int64_t n, int64_t k, int threads = 1);
/// `Y = max(X, 0)`.
MeasureTask relu_task(int64_t count);

/// A candidate whose code is made from the text of a function `measured_kernel`, its buffers flat and in the task's
/// order; buffers beyond the task's are workspaces.
MeasureCandidate candidate_from_text(const MeasureTask& task, const std::string& text);
/// The right matrix product by plain loops; `body` replaces the statement inside the loops over i and j.
std::string matmul_text(int64_t m, int64_t n, int64_t k, const std::string& body = {});

/// The same kernel with these bytes of machine code at its start.
MeasureCandidate with_code(MeasureCandidate candidate, const std::vector<uint8_t>& code);
/// Machine code (x86-64) that ends the process by a signal sent to itself, or by what really raises it.
std::vector<uint8_t> code_that_raises(int signal);
std::vector<uint8_t> code_that_hangs();

/// The default schedule as a candidate.
MeasureCandidate default_candidate(const MeasureTask& task);

/// Waits for the result of one candidate (results of others are dropped).
MeasureResult measure_one(MeasureSession& session, int task, MeasureCandidate candidate);

}  // namespace tensmith
