/// A worker as a child process, and memory that it shares with the session.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "autotune/measure/line_protocol.h"
#include "runtime/base/result.h"

namespace tensmith {

/// A child process in a group of its own with pipes to its standard streams, none of which blocks. The destructor kills
/// the group and waits for it. Threads: the thread that starts it must outlive it (workers die with it).
class WorkerProcess {
 public:
  /// `arguments[0]` is a path or a name that is looked up. `cpus`: where it may run; empty: anywhere.
  /// Errors: worker-start.
  static Result<std::unique_ptr<WorkerProcess>> start(const std::vector<std::string>& arguments,
                                                      const std::vector<int>& cpus, int64_t answer_limit);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  pid_t pid() const { return pid_; }
  int out_file() const { return out_; }
  int error_file() const { return error_; }
  int in_file() const { return in_; }
  bool wants_to_write() const { return !unsent_.empty(); }

  /// Queues a line; `pump` sends it.
  void send(const std::string& line) { unsent_ += line; }
  /// Writes and reads what is possible without waiting; false once the child has closed its output.
  bool pump();
  /// The next line that was read.
  std::optional<LineBuffer::Line> next_line() { return lines_.next(); }
  /// The last bytes of its standard error, in one line.
  std::string error_tail() const;

  /// Kills the group and waits; the status as of waitpid. Later calls give the same.
  int finish(bool kill_first);

 private:
  explicit WorkerProcess(int64_t answer_limit) : lines_(answer_limit) {}

  pid_t pid_ = -1;
  int in_ = -1, out_ = -1, error_ = -1;
  std::string unsent_, error_text_;
  LineBuffer lines_;
  int status_ = 0;
  bool is_finished_ = false;
};

/// Memory that another process of this user opens by path; gone with the last one who has it open.
class SharedMemory {
 public:
  /// Errors: out-of-memory (DeviceError).
  SharedMemory();
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  const std::string& path() const { return path_; }
  void write(const std::vector<uint8_t>& bytes);
  std::vector<uint8_t> read() const;

 private:
  int file_ = -1;
  std::string path_;
};

}  // namespace tensmith
