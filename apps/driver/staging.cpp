#include "apps/driver/staging.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <mutex>

#include "runtime/base/error.h"

namespace tensmith {

namespace {

constexpr int kHeld[] = {SIGINT, SIGTERM, SIGHUP};

/// What the process does with a held signal meanwhile.
struct Held {
  struct sigaction before;
  bool replaced = false;
};

std::mutex held_mutex;
int num_holders = 0;
Held held_signals[std::size(kHeld)];
volatile sig_atomic_t came[std::size(kHeld)];

void note(int signal) {
  for (size_t k = 0; k < std::size(kHeld); ++k)
    if (kHeld[k] == signal) came[k] = 1;
}

void replace_defaults() {
  for (size_t k = 0; k < std::size(kHeld); ++k) {
    Held& held = held_signals[k];
    held.replaced = sigaction(kHeld[k], nullptr, &held.before) == 0 && !(held.before.sa_flags & SA_SIGINFO) &&
                    held.before.sa_handler == SIG_DFL;
    if (!held.replaced) continue;
    struct sigaction noting = {};
    noting.sa_handler = note;
    noting.sa_flags = SA_RESTART;
    sigemptyset(&noting.sa_mask);
    held.replaced = sigaction(kHeld[k], &noting, nullptr) == 0;
  }
}

void restore_defaults() {
  for (size_t k = 0; k < std::size(kHeld); ++k)
    if (held_signals[k].replaced) sigaction(kHeld[k], &held_signals[k].before, nullptr);
}

}  // namespace

SignalsHeld::SignalsHeld() {
  sigset_t held;
  sigemptyset(&held);
  for (int signal : kHeld) sigaddset(&held, signal);
  pthread_sigmask(SIG_BLOCK, &held, &old_);
  const std::lock_guard lock(held_mutex);
  if (num_holders++ == 0) replace_defaults();
}

SignalsHeld::~SignalsHeld() {
  std::vector<int> late;
  {
    const std::lock_guard lock(held_mutex);
    if (--num_holders == 0) {
      restore_defaults();
      for (size_t k = 0; k < std::size(kHeld); ++k)
        if (came[k]) {
          came[k] = 0;
          late.push_back(kHeld[k]);
        }
    }
  }
  pthread_sigmask(SIG_SETMASK, &old_, nullptr);
  for (int signal : late) kill(getpid(), signal);
}

Staging::Staging(const std::filesystem::path& beside) {
  std::string pattern = ((beside.empty() ? "." : beside) / ".tensmith-XXXXXX").string();
  TS_USER_CHECK(mkdtemp(pattern.data()), "cannot-write")
      << "output folder " << beside.string() << ": cannot be written: " << std::strerror(errno)
      << "; choose another folder";
  folder_ = pattern;
}

Staging::~Staging() {
  std::error_code ignored;
  if (!is_kept_) std::filesystem::remove_all(folder_, ignored);
}

std::string Staging::path_for(const std::string& path) {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::is_symlink(path, error) && std::filesystem::exists(path, error)
                                           ? std::filesystem::canonical(path, error)
                                           : std::filesystem::path(path);
  const bool is_old = std::filesystem::exists(target, error);
  TS_USER_CHECK(!is_old || (std::filesystem::is_regular_file(target, error) && access(target.c_str(), W_OK) == 0),
                "cannot-write")
      << "output " << path << ": expected a file that may be replaced, got "
      << (std::filesystem::is_directory(target, error) ? "a folder" : "one without write permission")
      << "; remove it or choose another name";
  files_.push_back({(folder_ / std::filesystem::path(path).filename()).string(), target.string(), ""});
  return files_.back().staged;
}

void Staging::keep_old() {
  const std::filesystem::path kept = folder_ / ".old";
  std::error_code error;
  std::filesystem::create_directory(kept, error);
  for (size_t k = 0; k < files_.size() && !error; ++k) {
    File& file = files_[k];
    const auto status = std::filesystem::symlink_status(file.target, error);
    if (status.type() == std::filesystem::file_type::not_found) {
      error.clear();
      continue;
    }
    if (error || std::filesystem::is_directory(status)) continue;  // nothing can be moved onto it
    file.old = (kept / std::to_string(k)).string();
    if (std::filesystem::is_symlink(status)) {  // one that leads nowhere
      std::filesystem::copy_symlink(file.target, file.old, error);
      continue;
    }
    // A second name costs nothing; some file systems have none.
    std::filesystem::create_hard_link(file.target, file.old, error);
    if (error) {
      error.clear();
      std::filesystem::copy_file(file.target, file.old, error);
    }
  }
  TS_USER_CHECK(!error, "cannot-write") << "output folder " << folder_.parent_path().string()
                                        << ": what is there cannot be kept meanwhile: " << error.message()
                                        << "; choose another folder";
}

std::string Staging::put_back(size_t count) {
  std::string failed;
  for (size_t k = count; k-- > 0;) {
    const File& file = files_[k];
    std::error_code error;
    if (file.old.empty()) std::filesystem::remove(file.target, error);
    else std::filesystem::rename(file.old, file.target, error);
    if (!error) continue;
    failed += "; " + file.target + " could not be put back: " + error.message();
    if (file.old.empty()) continue;
    failed += ", its old content is " + file.old;
    is_kept_ = true;
  }
  return failed;
}

void Staging::commit() {
  keep_old();
  for (size_t k = 0; k < files_.size(); ++k) {
    std::error_code error;
    std::filesystem::rename(files_[k].staged, files_[k].target, error);
    if (!error) continue;
    const std::string failed = put_back(k);
    throw UserError("cannot-write", "output " + files_[k].target + ": cannot be replaced: " + error.message() +
                                        (failed.empty() ? "; all outputs are as they were" : failed));
  }
}

}  // namespace tensmith
