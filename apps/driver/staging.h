/// Files that come to their places together or not at all.
#pragma once

#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

namespace tensmith {

/// Puts off signals that would end the process (Ctrl-C) until the end of its life: they come when nothing half-made
/// lies about any more. A mask holds for one thread, and the system gives a process's signal to any that does not mask
/// it (another instance's worker, a thread of the host); so the default handlings are replaced too, for the process.
/// Handlers of the host stay and may run on other threads. Threads: any; several may live at a time.
class SignalsHeld {
 public:
  SignalsHeld();
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;
  ~SignalsHeld();

 private:
  sigset_t old_;
};

/// Files made in a folder beside their place and moved there together at the end: until then what was there stays
/// whole, and a failure leaves nothing new.
class Staging {
 public:
  /// Errors: cannot-write when the folder `beside` ("" for the current one) cannot be written.
  explicit Staging(const std::filesystem::path& beside);
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging();

  /// Where to write what shall become `path`.
  /// Errors: cannot-write when that may not be replaced.
  std::string path_for(const std::string& path);
  /// Where to write what is only needed meanwhile. `name`: a file name without folder, unlike those of the outputs.
  std::string scratch(const std::string& name) const { return (folder_ / (".scratch." + name)).string(); }
  /// Moves all files to their places, in the order in which they were asked for: who reads them should find last the
  /// one that leads to the others. When one cannot be moved, those before it are put back to what they were.
  /// Errors: cannot-write; should putting back fail too, the message says where the old files are kept.
  void commit();

 private:
  struct File {
    std::string staged, target;
    std::string old;  ///< what was at the target, kept until all is moved; "" if nothing was
  };

  void keep_old();
  /// Undoes the first `count` moves; says what could not be undone.
  std::string put_back(size_t count);

  const SignalsHeld held_;  // first, so that the folder is gone when signals come
  std::filesystem::path folder_;
  std::vector<File> files_;
  bool is_kept_ = false;  // the folder holds the only copy of something
};

}  // namespace tensmith
