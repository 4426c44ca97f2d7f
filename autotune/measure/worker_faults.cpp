#include "autotune/measure/worker_faults.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "runtime/base/error.h"

namespace tensmith {

namespace {

struct Zone {
  uintptr_t begin = 0, end = 0;
  char what[96] = {};
};

// Read by signal handlers, so plain data of static duration.
std::vector<Zone>& zones() {
  static auto* const list = new std::vector<Zone>;
  return *list;
}
/// A process that cannot have so many more bytes has reached its limit.
constexpr size_t kRoom = 4 << 20;
std::atomic<int> out_file{-1};
std::atomic<int64_t> request{-1};      // -1: none
std::atomic<bool> answer_taken{true};  // by whoever writes the answer of the request
std::atomic<MeasureFailure> on_signal{MeasureFailure::kCrashed};

/// Writes the failure of the request at hand, if nobody has answered it. Only calls what a signal handler may.
void answer_failure(MeasureFailure failure, int signal, const char* message, const char* detail) {
  if (answer_taken.exchange(true)) return;
  char text[512];
  const int size = std::snprintf(text, sizeof text,
                                 "{\"id\":%lld,\"ok\":false,\"kind\":\"%s\",\"signal\":%d,\"message\":\"%s%s\"}\n",
                                 static_cast<long long>(request.load()), to_string(failure), signal, message, detail);
  const ssize_t unused = write(out_file.load(), text, static_cast<size_t>(std::min<int>(size, sizeof text - 1)));
  static_cast<void>(unused);
}

const Zone* zone_at(uintptr_t address) {
  for (const Zone& zone : zones())
    if (address >= zone.begin && address < zone.end) return &zone;
  return nullptr;
}

bool is_write([[maybe_unused]] const void* context) {
#if defined(__x86_64__)
  return (static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
  return true;
#endif
}

void on_fault(int signal, siginfo_t* info, void* context) {
  // A fault while this runs ends the process at once.
  std::signal(signal, SIG_DFL);
  if (signal == SIGSEGV || signal == SIGBUS) {
    if (const Zone* zone = zone_at(reinterpret_cast<uintptr_t>(info->si_addr))) {
      const bool write = is_write(context);
      answer_failure(write ? MeasureFailure::kOutOfBoundsWrite : MeasureFailure::kOutOfBoundsRead, 0,
                     write ? "wrote " : "read ", zone->what);
      _exit(kWorkerFaultExit);
    }
  }
  const char* names[] = {"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGTRAP"};
  const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP};
  const char* name = "a signal";
  for (size_t k = 0; k < std::size(numbers); ++k)
    if (numbers[k] == signal) name = names[k];
  // A library that got no memory aborts, or trips over the null pointer.
  void* room = mmap(nullptr, kRoom, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) {
    answer_failure(MeasureFailure::kOutOfMemory, 0, "the worker's memory limit is reached; it died of ", name);
    _exit(kWorkerMemoryExit);
  }
  answer_failure(on_signal.load(), signal, "died of ", name);
  raise(signal);  // delivered when this returns, with the default action
}

[[noreturn]] void on_no_memory() {
  answer_failure(MeasureFailure::kOutOfMemory, 0, "the worker's memory limit is reached", "");
  _exit(kWorkerMemoryExit);
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Ends the process when a request takes too long.
class Watchdog {
 public:
  using Clock = std::chrono::steady_clock;

  void start() {
    std::thread([this] { run(); }).detach();
  }

  void arm(double seconds, int threads) {
    const std::lock_guard lock(mutex_);
    armed_ = true;
    seconds_ = seconds;
    threads_ = threads;
    processor_end_ = processor_seconds() + seconds;
    wall_end_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(3 * seconds));
    changed_.notify_one();
  }
  void disarm() {
    const std::lock_guard lock(mutex_);
    armed_ = false;  // the thread sleeps on and finds out when it wakes
  }

 private:
  void run() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    std::unique_lock lock(mutex_);
    for (;;) {
      if (!armed_) {
        changed_.wait(lock);
        continue;
      }
      const double left = processor_end_ - processor_seconds();
      if (left <= 0 || Clock::now() >= wall_end_) {
        char text[64];
        std::snprintf(text, sizeof text, "%.3g s of %s time", left <= 0 ? seconds_ : 3 * seconds_,
                      left <= 0 ? "processor" : "wall");
        answer_failure(
            on_signal.load() == MeasureFailure::kCrashed ? MeasureFailure::kRunTimeout : MeasureFailure::kBuildTimeout,
            0, "took more than ", text);
        _exit(kWorkerTimeoutExit);
      }
      // Processor time cannot pass faster than all threads together use it, so nothing is checked too late.
      const auto next = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(std::max(0.01, left / threads_)));
      changed_.wait_until(lock, std::min(next, wall_end_));
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool armed_ = false;
  double seconds_ = 0, processor_end_ = 0;
  int threads_ = 1;
  Clock::time_point wall_end_;
};

Watchdog& watchdog() {
  static auto* const dog = new Watchdog;
  return *dog;
}

}  // namespace

void install_worker_faults(int out) {
  out_file = out;
  zones().reserve(4096);
  watchdog().start();
  std::set_new_handler(on_no_memory);
  // A stack of its own, since the kernel may have used up the usual one.
  static auto* const stack = new char[65536];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = 65536;
  sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP}) sigaction(signal, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

void begin_request(int64_t id, MeasureFailure failure) {
  request = id;
  on_signal = failure;
  answer_taken = false;
}

bool end_request() {
  const bool open = !answer_taken.exchange(true);
  request = -1;
  return open;
}

void arm_watchdog(double seconds, int threads) { watchdog().arm(seconds, threads); }
void disarm_watchdog() { watchdog().disarm(); }

void limit_memory(int64_t mib) {
  int64_t pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    long long size = 0;
    if (std::fscanf(file, "%lld", &size) == 1) pages = size;
    std::fclose(file);
  }
  const rlim_t bytes =
      static_cast<rlim_t>(pages) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (static_cast<rlim_t>(mib) << 20);
  const rlimit limit{bytes, bytes};
  setrlimit(RLIMIT_AS, &limit);
  // A core file of a crash would cost more than the candidate.
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

void add_guard_zone(const void* begin, int64_t bytes, const std::string& what) {
  Zone zone;
  zone.begin = reinterpret_cast<uintptr_t>(begin);
  zone.end = zone.begin + static_cast<uintptr_t>(bytes);
  std::strncpy(zone.what, what.c_str(), sizeof zone.what - 1);
  for (char& c : zone.what)
    if (c == '"' || c == '\\' || (c != 0 && static_cast<unsigned char>(c) < 0x20)) c = '_';
  zones().push_back(zone);
}

void remove_guard_zone(const void* begin) {
  std::vector<Zone>& list = zones();
  for (size_t k = list.size(); k-- > 0;)
    if (list[k].begin == reinterpret_cast<uintptr_t>(begin)) {
      list[k] = list.back();
      list.pop_back();
      return;
    }
}

}  // namespace tensmith
