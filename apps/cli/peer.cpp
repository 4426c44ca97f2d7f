#include "apps/cli/peer.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>

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
  return path;
}

std::string python() {
  const char* set = std::getenv("TENSMITH_VENV");
  const std::filesystem::path path = set ? std::filesystem::path(set) : home() / "build/venv";
  const std::string program = (path / "bin/python").string();
  TS_USER_CHECK(std::filesystem::exists(program), "no-onnxruntime")
      << "onnxruntime: expected a Python environment at " << path.string()
      << ", found none; run apps/setup/install onnxruntime";
  return program;
}

/// Starts a program with pipes to its standard input and output.
pid_t start(const std::vector<std::string>& command, FILE** to, FILE** from) {
  int input[2], output[2];
  TS_USER_CHECK(pipe(input) == 0 && pipe(output) == 0, "peer-failed") << "onnxruntime: no pipe can be made";
  const pid_t child = fork();
  TS_USER_CHECK(child >= 0, "peer-failed") << "onnxruntime: no process can be started";
  if (child == 0) {
    dup2(input[0], 0);
    dup2(output[1], 1);
    for (int fd : {input[0], input[1], output[0], output[1]}) close(fd);
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(input[0]);
  close(output[1]);
  *to = fdopen(input[1], "w");
  *from = fdopen(output[0], "r");
  return child;
}

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
  FILE *to = nullptr, *from = nullptr;
  const pid_t child = start(command, &to, &from);
  std::fclose(to);
  std::fclose(from);
  int status = 0;
  waitpid(child, &status, 0);
  TS_USER_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "peer-failed")
      << "onnxruntime: the reference run ended with status " << status << "; its message is above";
  std::vector<HostTensor> outputs;
  for (int32_t k = 0; k < description.num_outputs; ++k)
    outputs.push_back(take(read_npy(folder.file("output_" + std::to_string(k) + ".npy"))));
  return outputs;
}

Peer::Peer(const std::string& model, int threads, const tensmith_model& description, std::vector<HostTensor>& inputs) {
  std::string pattern = (std::filesystem::temp_directory_path() / "tensmith-peer-XXXXXX").string();
  TS_USER_CHECK(mkdtemp(pattern.data()), "peer-failed") << "onnxruntime: no temporary folder can be made";
  folder_ = pattern;
  std::vector<std::string> command{python(), (home() / "apps/bench/peer_onnxruntime.py").string(), model, "--threads",
                                   std::to_string(threads)};
  for (std::string& flag : input_flags(folder_, description, inputs)) command.push_back(std::move(flag));
  signal(SIGPIPE, SIG_IGN);
  child_ = start(command, &to_, &from_);
  const Json ready = take(parse_json(read_line()));
  TS_USER_CHECK(ready.contains("ready"), "peer-failed") << "onnxruntime: " << ready.dump();
  version_ = ready.value("version", "");
}

Peer::~Peer() {
  if (to_) {
    std::fputs("quit\n", to_);
    std::fclose(to_);
  }
  if (from_) std::fclose(from_);
  if (child_ > 0) waitpid(child_, nullptr, 0);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string Peer::read_line() {
  std::string line;
  for (int c = std::fgetc(from_); c != EOF && c != '\n'; c = std::fgetc(from_)) line += static_cast<char>(c);
  TS_USER_CHECK(!line.empty(), "peer-failed") << "onnxruntime: the process ended; its message is above";
  return line;
}

std::vector<double> Peer::run(int count) {
  std::fprintf(to_, "run %d\n", count);
  std::fflush(to_);
  const Json answer = take(parse_json(read_line()));
  TS_USER_CHECK(answer.contains("times_ms"), "peer-failed") << "onnxruntime: " << answer.dump();
  return answer["times_ms"].get<std::vector<double>>();
}

}  // namespace tensmith::cli
