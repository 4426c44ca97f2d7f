#include "autotune/measure/worker_process.h"

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "runtime/base/error.h"

extern char** environ;

namespace tensmith {

namespace {

constexpr size_t kErrorTail = 4096;

struct Pipe {
  int read_end = -1, write_end = -1;
  bool open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end = ends[0];
    write_end = ends[1];
    return true;
  }
  ~Pipe() {
    if (read_end >= 0) close(read_end);
    if (write_end >= 0) close(write_end);
  }
};

void set_nonblocking(int file) { fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_NONBLOCK); }

}  // namespace

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(const std::vector<std::string>& arguments,
                                                            const std::vector<int>& cpus, int64_t answer_limit) {
  const auto fail = [&](int error) {
    return Failure{"worker-start", "worker " + arguments[0] + ": cannot be started: " + std::strerror(error)};
  };
  Pipe in, out, error;
  if (!in.open() || !out.open() || !error.open()) return fail(errno);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read_end, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write_end, 1);
  posix_spawn_file_actions_adddup2(&actions, error.write_end, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> words;
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  std::unique_ptr<WorkerProcess> worker(new WorkerProcess(answer_limit));
  // The child inherits where this thread may run, so that its very first threads already stand where they belong.
  cpu_set_t before;
  const bool pinned = !cpus.empty() && sched_getaffinity(0, sizeof before, &before) == 0;
  if (pinned) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu : cpus) CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
      const int reason = errno;
      posix_spawn_file_actions_destroy(&actions);
      posix_spawnattr_destroy(&attributes);
      worker->is_finished_ = true;
      return fail(reason);
    }
  }
  const int failed = posix_spawnp(&worker->pid_, words[0], &actions, &attributes, words.data(), environ);
  if (pinned) sched_setaffinity(0, sizeof before, &before);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) {
    worker->pid_ = -1;
    worker->is_finished_ = true;
    return fail(failed);
  }
  worker->in_ = std::exchange(in.write_end, -1);
  worker->out_ = std::exchange(out.read_end, -1);
  worker->error_ = std::exchange(error.read_end, -1);
  for (int file : {worker->in_, worker->out_, worker->error_}) set_nonblocking(file);
  return worker;
}

WorkerProcess::~WorkerProcess() {
  finish(/*kill_first=*/true);
  for (int file : {in_, out_, error_})
    if (file >= 0) close(file);
}

bool WorkerProcess::pump() {
  while (!unsent_.empty()) {
    // A worker that is gone shows at its output; the signal is no news.
    sigset_t pipe_signal, before;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    const ssize_t count = write(in_, unsent_.data(), unsent_.size());
    const int error = errno;
    if (count < 0 && error == EPIPE && !sigismember(&before, SIGPIPE)) {
      const timespec now{};
      sigtimedwait(&pipe_signal, nullptr, &now);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (count < 0 && error == EINTR) continue;
    if (count < 0 && error == EAGAIN) break;
    if (count <= 0) {
      unsent_.clear();
      break;
    }
    unsent_.erase(0, static_cast<size_t>(count));
  }
  std::array<char, 65536> bytes;
  for (;;) {
    const ssize_t count = read(error_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    error_text_.append(bytes.data(), static_cast<size_t>(count));
    if (error_text_.size() > 2 * kErrorTail) error_text_.erase(0, error_text_.size() - kErrorTail);
  }
  // A bounded piece at a time, so that a worker that floods us cannot hold the others up.
  for (int turn = 0; turn < 64; ++turn) {
    const ssize_t count = read(out_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN;
    if (count == 0) return false;
    lines_.append({bytes.data(), static_cast<size_t>(count)});
  }
  return true;
}

std::string WorkerProcess::error_tail() const {
  std::string tail = error_text_.substr(error_text_.size() > 300 ? error_text_.size() - 300 : 0);
  while (!tail.empty() && (tail.back() == '\n' || tail.back() == ' ')) tail.pop_back();
  for (char& c : tail)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return tail;
}

int WorkerProcess::finish(bool kill_first) {
  if (is_finished_) return status_;
  if (kill_first) {
    kill(-pid_, SIGKILL);
    kill(pid_, SIGKILL);
  }
  while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
  }
  // What it may have left in its group.
  kill(-pid_, SIGKILL);
  is_finished_ = true;
  return status_;
}

SharedMemory::SharedMemory() : file_(memfd_create("tensmith-code", MFD_CLOEXEC)) {
  if (file_ < 0) throw DeviceError("out-of-memory", "shared memory: the system gives none");
  path_ = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_);
}

SharedMemory::~SharedMemory() { close(file_); }

void SharedMemory::write(const std::vector<uint8_t>& bytes) {
  if (ftruncate(file_, 0) != 0 || lseek(file_, 0, SEEK_SET) != 0 ||
      !write_all(file_, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}))
    throw DeviceError("out-of-memory", "shared memory: no room for " + std::to_string(bytes.size()) + " bytes");
}

std::vector<uint8_t> SharedMemory::read() const {
  struct stat info {};
  if (fstat(file_, &info) != 0) return {};
  std::vector<uint8_t> bytes(static_cast<size_t>(info.st_size));
  const ssize_t count = pread(file_, bytes.data(), bytes.size(), 0);
  bytes.resize(count < 0 ? 0 : static_cast<size_t>(count));
  return bytes;
}

}  // namespace tensmith
