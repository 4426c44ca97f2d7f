#include "autotune/search/guarded_features.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "runtime/base/error.h"

namespace tensmith {

namespace {

using Clock = std::chrono::steady_clock;

/// What stands before the numbers of a candidate.
struct Header {
  uint64_t candidate = 0;
  uint64_t nests = 0, kernel = 0;  ///< counts of floats; both 0: refused
  double analytic_cycles = 0;
};
// No candidate has more loop nests than make that many numbers.
constexpr uint64_t kMostNumbers = uint64_t{1} << 24;

bool send(int file, const void* data, size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t count = write(file, at, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    bytes -= static_cast<size_t>(count);
  }
  return true;
}

/// Reads so many bytes before the end of the time; false when the time is over or nobody writes any more.
bool receive(int file, void* data, size_t bytes, Clock::time_point end) {
  auto* at = static_cast<char*>(data);
  while (bytes > 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return false;
    pollfd wanted{file, POLLIN, 0};
    const int ready = poll(&wanted, 1, static_cast<int>(std::min<int64_t>(left + 1, 60'000)));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    const ssize_t count = read(file, at, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    bytes -= static_cast<size_t>(count);
  }
  return true;
}

void limit_address_space(int64_t mib) {
  int64_t pages = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  if (pages == 0) return;
  const auto bytes = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + (mib << 20));
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_AS, &limit);
}

/// The copy's life: candidates from `first` on, one after the other.
[[noreturn]] void serve(int out, size_t first, size_t count, const std::function<KernelFeatures(size_t)>& features,
                        const FeatureLimits& limits, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTERM}) std::signal(number, SIG_DFL);
  // Ctrl-C in a terminal reaches this process too; the tuner decides what it means.
  std::signal(SIGINT, SIG_IGN);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  limit_address_space(limits.mib);
  for (size_t k = first; k < count; ++k) {
    Header header{k, 0, 0, 0};
    KernelFeatures row;
    try {
      row = features(k);
      header = {k, row.nests.size(), row.kernel.size(), row.analytic_cycles};
    } catch (const std::exception&) {
      // Refused, as its header says.
    }
    if (!send(out, &header, sizeof header) || !send(out, row.nests.data(), header.nests * sizeof(float)) ||
        !send(out, row.kernel.data(), header.kernel * sizeof(float)))
      _exit(1);
  }
  _exit(0);
}

}  // namespace

Result<std::vector<std::optional<KernelFeatures>>> guarded_features(
    size_t count, const std::function<KernelFeatures(size_t)>& features, const FeatureLimits& limits) {
  std::vector<std::optional<KernelFeatures>> rows(count);
  const pid_t self = getpid();
  const auto refused = [](const char* what) {
    return Failure{"worker-start", std::string("features of candidates: expected a copy of this process, got none: ") +
                                       what + ": " + std::strerror(errno) + "; allow more processes, files or memory"};
  };
  // A copy that ends early takes one candidate with it; the next copy goes on behind that.
  for (size_t next = 0; next < count;) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return refused("pipe");
    const pid_t child = fork();
    if (child == 0) serve(ends[1], next, count, features, limits, self);
    if (child < 0) {
      Failure failure = refused("fork");
      close(ends[0]);
      close(ends[1]);
      return failure;
    }
    close(ends[1]);
    while (next < count) {
      const auto end =
          Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limits.seconds));
      Header header;
      KernelFeatures row;
      if (!receive(ends[0], &header, sizeof header, end) || header.candidate != next ||
          header.nests + header.kernel > kMostNumbers)
        break;
      row.nests.resize(header.nests);
      row.kernel.resize(header.kernel);
      row.analytic_cycles = header.analytic_cycles;
      if (!receive(ends[0], row.nests.data(), header.nests * sizeof(float), end) ||
          !receive(ends[0], row.kernel.data(), header.kernel * sizeof(float), end))
        break;
      if (!row.kernel.empty()) rows[next] = std::move(row);
      ++next;
    }
    close(ends[0]);
    kill(child, SIGKILL);
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    if (next < count) ++next;
  }
  return rows;
}

}  // namespace tensmith
