// The operators against ONNX's own data: runs the graph interpreter over the node cases of the ONNX backend test suite,
// once by the references and once by the compute rules. Needs TENSMITH_ONNX_DATA, the suite's folder
// (onnx/backend/test/data of the Python package `onnx`). TENSMITH_ONNX_CASES: only cases whose name contains this.
// TENSMITH_ONNX_REPORT: a file to which one line a case is written: pass, refused or FAIL, and why.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "graph/import/onnx_import.h"
#include "graph/import/tensor_proto.h"
#include "graph/interpret.h"

namespace tensmith::graph {
namespace {

namespace fs = std::filesystem;

/// Cases whose stored answers are doubtful (see tests/conformance/waivers.txt).
const char* const kWaivers[] = {
    // Zeros that were stored as rounding noise of float32 above the suite's tolerance; the interpreter computes in
    // double.
    "test_dft_inverse",
    "test_dft_inverse_opset19",
    "test_resize_downsample_scales_linear_align_corners",
    "test_resize_downsample_scales_cubic_align_corners",
    "test_maxunpool_export_with_output_shape",
};

std::string env(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

struct Refused {
  std::string why;
};

/// `input_3.pb` of a data set; throws Refused for what is no tensor of a known type.
onnx::TensorProto read_proto(const fs::path& path) {
  onnx::TensorProto proto;
  if (!proto.ParseFromString(read_file(path))) throw Refused{"no tensor: " + path.filename().string()};
  return proto;
}

RefTensor read_ref_tensor(const fs::path& path) {
  onnx::TensorProto proto = read_proto(path);
  ExternalData files("");
  Result<Constant> constant = read_tensor(proto, path.filename().string(), files, {});
  if (!constant) throw Refused{constant.failure().id + ": " + constant.failure().message};
  return to_ref_tensor(*constant);
}

/// Imports the model; small integer inputs become initializers, since they may steer shapes (axes, sizes).
Graph import_case(const fs::path& folder, const fs::path& data, std::vector<size_t>* remaining) {
  onnx::ModelProto model;
  if (!model.ParseFromString(read_file(folder / "model.onnx"))) throw Refused{"no model"};
  onnx::GraphProto& graph = *model.mutable_graph();
  google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> kept;
  for (int k = 0; k < graph.input_size(); ++k) {
    const fs::path file = data / ("input_" + std::to_string(k) + ".pb");
    const int type = graph.input(k).type().tensor_type().elem_type();
    const bool steers = graph.input(k).type().has_tensor_type() &&
                        (type == onnx::TensorProto::INT64 || type == onnx::TensorProto::INT32) && fs::exists(file);
    if (steers) {
      onnx::TensorProto proto = read_proto(file);
      int64_t count = 1;
      for (int64_t dim : proto.dims()) count *= dim;
      if (count <= 64 && proto.dims_size() <= 1) {
        proto.set_name(graph.input(k).name());
        *graph.add_initializer() = std::move(proto);
        continue;
      }
    }
    remaining->push_back(static_cast<size_t>(k));
    *kept.Add() = graph.input(k);
  }
  graph.mutable_input()->Swap(&kept);
  const std::string bytes = model.SerializeAsString();
  ImportResult result = import_onnx_bytes(bytes.data(), bytes.size(), {}, folder.string());
  if (!result.ok())
    throw Refused{result.unsupported.rows[0].id + ": " + result.unsupported.rows[0].op + ": " +
                  result.unsupported.rows[0].why};
  return std::move(result.graph);
}

/// Empty when equal by the suite's rule, else the difference.
std::string difference(const RefTensor& got, const RefTensor& want) {
  if (got.dtype != want.dtype) return "dtype " + to_string(got.dtype) + ", want " + to_string(want.dtype);
  if (got.shape != want.shape)
    return "shape " + to_string(static_type(got.dtype, got.shape)) + ", want " +
           to_string(static_type(want.dtype, want.shape));
  for (int64_t k = 0; k < want.num_elements(); ++k) {
    const double a = got.get(k), b = want.get(k);
    const bool same = std::isnan(b) ? std::isnan(a) : a == b || std::fabs(a - b) <= 1e-7 + 1e-3 * std::fabs(b);
    if (!same) return "element " + std::to_string(k) + " is " + std::to_string(a) + ", want " + std::to_string(b);
  }
  return {};
}

enum class Outcome { kPass, kRefused, kFail };

std::pair<Outcome, std::string> run_case(const fs::path& folder, const InterpretOptions& options) {
  try {
    const fs::path data = folder / "test_data_set_0";
    std::vector<size_t> remaining;
    const Graph graph = import_case(folder, data, &remaining);
    std::vector<RefTensor> inputs;
    for (size_t k : remaining) inputs.push_back(read_ref_tensor(data / ("input_" + std::to_string(k) + ".pb")));
    const Result<std::vector<RefTensor>> outputs = interpret(graph, std::move(inputs), options);
    if (!outputs) return {Outcome::kRefused, outputs.failure().id + ": " + outputs.failure().message};
    for (size_t k = 0; k < outputs->size(); ++k) {
      const std::string text =
          difference((*outputs)[k], read_ref_tensor(data / ("output_" + std::to_string(k) + ".pb")));
      if (!text.empty()) return {Outcome::kFail, "output " + std::to_string(k) + ": " + text};
    }
    return {Outcome::kPass, ""};
  } catch (const Refused& refused) {
    return {Outcome::kRefused, refused.why};
  } catch (const InternalError& error) {
    return {Outcome::kFail, error.what()};
  } catch (const Error& error) {
    return {Outcome::kRefused, error.what()};
  }
}

void run_all(const InterpretOptions& options, const char* way) {
  const std::string root = env("TENSMITH_ONNX_DATA"), only = env("TENSMITH_ONNX_CASES"),
                    report_path = env("TENSMITH_ONNX_REPORT");
  if (root.empty()) GTEST_SKIP() << "TENSMITH_ONNX_DATA is not set";
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(fs::path(root) / "node"))
    if (entry.path().filename().string().find(only) != std::string::npos) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  ASSERT_FALSE(folders.empty()) << "no cases below " << root;
  std::ofstream report;
  if (!report_path.empty()) report.open(report_path + "." + way);
  int passed = 0, refused = 0;
  for (const fs::path& folder : folders) {
    const std::string name = folder.filename().string();
    const auto [outcome, why] = run_case(folder, options);
    passed += outcome == Outcome::kPass;
    refused += outcome == Outcome::kRefused;
    if (report.is_open())
      report << (outcome == Outcome::kPass      ? "pass "
                 : outcome == Outcome::kRefused ? "refused "
                                                : "FAIL ")
             << name << " " << why << std::endl;
    const bool waived = std::any_of(std::begin(kWaivers), std::end(kWaivers), [&](const char* w) { return name == w; });
    EXPECT_TRUE(waived || outcome != Outcome::kFail) << name << ": " << why;
  }
  std::cout << way << ": " << passed << " of " << folders.size() << " node cases pass, " << refused << " are refused\n";
}

TEST(OnnxNode, ReferencesAgreeWithTheStoredAnswers) { run_all({}, "reference"); }

TEST(OnnxNode, ComputeRulesAgreeWithTheStoredAnswers) { run_all({.round_each = true, .by_compute = true}, "compute"); }

}  // namespace
}  // namespace tensmith::graph
