/// The worker's side of measuring: answers requests, one JSON object a line.
#pragma once

namespace tensmith {

/// How a worker is connected.
struct WorkerOptions {
  int in = 0, out = 1;          ///< file descriptors
  bool die_with_parent = true;  ///< SIGKILL when the process that started it ends
  long max_request_bytes = 256L << 20;
};

/// Serves until `bye` or the end of the input; returns the exit code. Standard output of whatever else runs in this
/// process goes to standard error, so that it cannot mix with answers.
///
/// Requests have `id` (a number) and `op`; answers have the id and `ok`, with `kind` (see MeasureFailure, or
/// `bad-request`) and `message` where it is false. A line that is no request gets an answer with `id` -1. By `op`:
/// - `hello`: {memory_mib}; gives tool, protocol, target, cpu, pid
/// - `task`: {task, value: a MeasureTask}; registers it under a name
/// - `forget`: {task}
/// - `build`: {task, steps: lines of text, to: a file for the code, or none for base64; seconds, code_bytes,
/// max_unroll,
///   guard: options or none}; gives kernel, report, code (base64) or code_bytes
/// - `load`: {task, kernel: name, value: a BuiltKernel, from: a file, or code: base64}
/// - `reference`: {task, kernel, seconds}; gives note
/// - `check`: {task, kernel, sets: [0, 1], seconds}
/// - `measure`: {task, kernel, incumbent: name or none, timing: options, to_the_cap, seconds}; gives timing
/// - `drop`: {task, kernel}
/// - `bye`
int serve_worker(const WorkerOptions& options);

}  // namespace tensmith
