/// ONNX Runtime as a process beside: from the virtual environment that apps/setup makes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/files.h"
#include "runtime/export/abi.h"
#include "runtime/tensor.h"

namespace tensmith::cli {

/// The outputs that ONNX Runtime gives for these inputs. Errors: UserError `no-onnxruntime`, `peer-failed`.
std::vector<HostTensor> onnxruntime_outputs(const std::string& model, const tensmith_model& description,
                                            std::vector<HostTensor>& inputs);

class Child;

/// A process that times the model on request (see apps/bench/contest.py).
class Peer {
 public:
  /// Starts apps/bench/peer_onnxruntime.py. Errors: UserError `no-onnxruntime`, `peer-failed`.
  Peer(const std::string& model, int threads, const tensmith_model& description, std::vector<HostTensor>& inputs);
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer();
  const std::string& version() const { return version_; }
  /// Units: milliseconds of each of `count` runs.
  std::vector<double> run(int count);

 private:
  const TempDir folder_;
  std::string version_;
  std::unique_ptr<Child> child_;
};

}  // namespace tensmith::cli
