#include "apps/cli/peer.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "apps/cli/model.h"
#include "runtime/base/files.h"
#include "runtime/npy.h"

namespace tensmith::cli {

namespace {

/// The root of the checkout: where this program lies in build/, or TENSMITH_HOME.
std::filesystem::path home() {
  if (const char* set = std::getenv("TENSMITH_HOME")) return set;
  std::error_code error;
  std::filesystem::path path = std::filesystem::canonical("/proc/self/exe", error).parent_path();
  while (path.has_relative_path() && !std::filesystem::exists(path / "apps/bench/peer_onnxruntime.py"))
    path = path.parent_path();
  TS_USER_CHECK(path.has_relative_path(), "no-onnxruntime")
      << "onnxruntime: expected this program inside a checkout, whose apps/bench serves the peer, found none; set "
      << "TENSMITH_HOME to one";
  return path;
}

bool has_package(const std::filesystem::path& environment, const char* name) {
  std::error_code error;
  for (const auto& python : std::filesystem::directory_iterator(environment / "lib", error))
    if (std::filesystem::exists(python.path() / "site-packages" / name, error)) return true;
  return false;
}

std::string python() {
  const char* set = std::getenv("TENSMITH_VENV");
  const std::filesystem::path path = set ? std::filesystem::path(set) : home() / "build/venv";
  const std::string program = (path / "bin/python").string();
  TS_USER_CHECK(std::filesystem::exists(program), "no-onnxruntime")
      << "onnxruntime: expected a Python environment at " << path.string()
      << ", found none; run apps/setup/install onnxruntime";
  TS_USER_CHECK(has_package(path, "onnxruntime"), "no-onnxruntime")
      << "onnxruntime: expected the package in the Python environment at " << path.string()
      << ", found none; run apps/setup/install onnxruntime";
  return program;
}

}  // namespace

/// A process with pipes to its standard input and output. Ended and waited for at the end of its life, whatever
/// happened in between.
class Child {
 public:
  explicit Child(const std::vector<std::string>& command) {
    int input[2], output[2];
    // The other ends must not be inherited: a child that holds its own input never sees its end.
    TS_USER_CHECK(pipe2(input, O_CLOEXEC) == 0, "peer-failed") << "onnxruntime: no pipe can be made";
    if (pipe2(output, O_CLOEXEC) != 0) {
      for (int fd : input) close(fd);
      throw UserError("peer-failed", "onnxruntime: no pipe can be made");
    }
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(input[0], 0);
      dup2(output[1], 1);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(input[0]);
    close(output[1]);
    to_ = fdopen(input[1], "w");
    from_ = fdopen(output[0], "r");
    TS_USER_CHECK(pid_ > 0 && to_ && from_, "peer-failed") << "onnxruntime: no process can be started";
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (to_) std::fclose(to_);
    if (from_) std::fclose(from_);
    if (pid_ <= 0) return;
    // The end of its input ends it; who does not go within five seconds is ended.
    for (int turn = 0; turn < 500; ++turn) {
      if (waitpid(pid_, nullptr, WNOHANG) != 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  void write(const std::string& text) {
    std::fputs(text.c_str(), to_);
    std::fflush(to_);
  }
  std::string read_line() {
    std::string line;
    for (int c = std::fgetc(from_); c != EOF && c != '\n'; c = std::fgetc(from_)) line += static_cast<char>(c);
    TS_USER_CHECK(!line.empty(), "peer-failed") << "onnxruntime: the process ended; its message is above";
    return line;
  }
  /// Closes the pipes and waits for the end; the status as waitpid gives it.
  int wait() {
    std::fclose(to_);
    std::fclose(from_);
    to_ = from_ = nullptr;
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_ = -1;
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
};

namespace {

/// Saves the inputs as files and gives the flags that name them.
std::vector<std::string> input_flags(const std::string& folder, const tensmith_model& description,
                                     std::vector<HostTensor>& inputs) {
  std::vector<std::string> flags;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const std::string file = folder + "/input_" + std::to_string(k) + ".npy";
    take(write_npy(file, inputs[k]));
    flags.push_back("--input");
    flags.push_back(std::string(description.inputs[k].name) + "=@" + file);
  }
  return flags;
}

}  // namespace

std::vector<HostTensor> onnxruntime_outputs(const std::string& model, const tensmith_model& description,
                                            std::vector<HostTensor>& inputs) {
  const TempDir folder;
  std::vector<std::string> command{python(), (home() / "apps/bench/onnxruntime_outputs.py").string(), model,
                                   "--output-dir", folder.path()};
  for (std::string& flag : input_flags(folder.path(), description, inputs)) command.push_back(std::move(flag));
  const int status = Child(command).wait();
  TS_USER_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "peer-failed")
      << "onnxruntime: the reference run ended with "
      << (WIFEXITED(status) ? "exit code " + std::to_string(WEXITSTATUS(status))
                            : "signal " + std::to_string(WTERMSIG(status)))
      << "; its message is above";
  std::vector<HostTensor> outputs;
  for (int32_t k = 0; k < description.num_outputs; ++k)
    outputs.push_back(take(read_npy(folder.file("output_" + std::to_string(k) + ".npy"))));
  return outputs;
}

Peer::Peer(const std::string& model, int threads, const tensmith_model& description, std::vector<HostTensor>& inputs) {
  std::vector<std::string> command{python(), (home() / "apps/bench/peer_onnxruntime.py").string(), model, "--threads",
                                   std::to_string(threads)};
  for (std::string& flag : input_flags(folder_.path(), description, inputs)) command.push_back(std::move(flag));
  signal(SIGPIPE, SIG_IGN);
  child_ = std::make_unique<Child>(command);
  const Json ready = take(parse_json(child_->read_line()));
  TS_USER_CHECK(ready.contains("ready"), "peer-failed") << "onnxruntime: " << ready.dump();
  version_ = ready.value("version", "");
}

Peer::~Peer() = default;

std::vector<double> Peer::run(int count) {
  child_->write("run " + std::to_string(count) + "\n");
  const Json answer = take(parse_json(child_->read_line()));
  TS_USER_CHECK(answer.contains("times_ms"), "peer-failed") << "onnxruntime: " << answer.dump();
  return answer["times_ms"].get<std::vector<double>>();
}

}  // namespace tensmith::cli
