#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <iostream>

#include "apps/cli/commands.h"
#include "apps/cli/compare.h"
#include "apps/cli/kernel_check.h"
#include "apps/cli/model.h"
#include "apps/cli/peer.h"
#include "apps/cli/repro.h"
#include "apps/cli/verify_batch.h"
#include "runtime/base/config.h"
#include "runtime/base/files.h"
#include "runtime/npy.h"

namespace tensmith::cli {

namespace {

/// The arrays of a folder test_data_set_N: sets.json beside it names the files of inputs and outputs.
struct DataSet {
  std::map<std::string, HostTensor> inputs, outputs;
};

/// Reads a folder of arrays: by the list sets.json beside it, else input_K.npy and output_K.npy by the model's order.
DataSet read_data_set(std::filesystem::path folder, const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs) {
  if (!folder.has_filename()) folder = folder.parent_path();
  DataSet set;
  const std::filesystem::path index = folder.parent_path() / "sets.json";
  if (std::filesystem::exists(index)) {
    const Json json = take(parse_json(take(read_file(index.string()))));
    try {
      for (const Json& entry : json.at("sets")) {
        if (entry.at("id") != folder.filename().string()) continue;
        for (const auto& [kind, arrays] : {std::pair("inputs", &set.inputs), std::pair("outputs", &set.outputs)})
          for (const Json& tensor : entry.at(kind))
            arrays->emplace(tensor.at("name").get<std::string>(),
                            take(read_npy((index.parent_path() / tensor.at("file").get<std::string>()).string())));
      }
    } catch (const Json::exception& e) {
      throw UserError("bad-sets", index.string() + ": expected the form of apps/models/layout.py: " + e.what());
    }
  } else {
    const auto read = [&](const char* kind, const std::vector<std::string>& names,
                          std::map<std::string, HostTensor>& arrays) {
      for (size_t k = 0; k < names.size(); ++k) {
        const std::filesystem::path file = folder / (std::string(kind) + std::to_string(k) + ".npy");
        if (std::filesystem::exists(file)) arrays.emplace(names[k], take(read_npy(file.string())));
      }
    };
    read("input_", inputs, set.inputs);
    read("output_", outputs, set.outputs);
  }
  TS_USER_CHECK(!set.outputs.empty(), "no-reference") << "--ref " << folder.string()
                                                      << ": expected arrays of right answers, found none; the folder "
                                                         "holds output_0.npy ... or sets.json lies beside it";
  return set;
}

/// The names of inputs and outputs, from the model or library itself.
std::pair<std::vector<std::string>, std::vector<std::string>> port_names(const Options& options) {
  std::pair<std::vector<std::string>, std::vector<std::string>> names;
  if (is_library(options.model)) {
    const Module module = take(Module::load(options.model));
    for (int32_t k = 0; k < module.model().num_inputs; ++k) names.first.push_back(module.model().inputs[k].name);
    for (int32_t k = 0; k < module.model().num_outputs; ++k) names.second.push_back(module.model().outputs[k].name);
  } else if (const graph::ImportResult imported = import_model(options); imported.ok()) {
    for (graph::NodeId id : imported.graph.inputs) names.first.push_back(imported.graph.value_name({id, 0}));
    names.second = imported.graph.output_names;
  }
  return names;
}

/// What repeats a wrong result: the first kernel that differs alone, else the whole graph; and the inputs.
ReproducerFiles wrong_result(const LoadedModel& model, Instance& instance, const Options& options,
                             std::vector<HostTensor>& inputs, const std::string& text) {
  if (model.program) {
    KernelCheckReport report = check_kernels(model, instance, options, inputs);
    if (report.wrong) return std::move(report.files);
  }
  ReproducerFiles files{{"error.txt", text}};
  if (model.graph) files["model.graph"] = reproducer_graph(*model.graph);
  for (size_t k = 0; k < inputs.size(); ++k)
    if (const Result<std::string> bytes = npy_bytes(inputs[k])) files["input_" + std::to_string(k) + ".npy"] = *bytes;
  return files;
}

/// Says so where rounding alone moves the result out of the tolerance: sums that cancel, near ties, divisions by
/// nearly nothing.
void rounding_note(const graph::Graph& graph, const std::vector<HostTensor>& inputs,
                   const std::vector<HostTensor>& wanted, const Options& options) {
  const std::vector<HostTensor> rounded = rounded_outputs(graph, inputs);
  for (size_t k = 0; k < rounded.size(); ++k) {
    const Comparison c = compare(rounded[k], wanted[k], options.rtol, options.atol, /*scale_atol=*/true);
    if (c.same) continue;
    std::cout.flush();
    std::cerr << "note: on these inputs rounding alone moves output " << graph.output_names[k] << " by " << c.max_abs
              << " (the interpreter with each result moved by one part in 10^6, as long sums in float32 are, against "
                 "itself), so no float32 program need agree: near ties, or divisions by nearly nothing; verify with "
                 "other inputs, or against another runtime: --ref onnxruntime\n";
    return;
  }
}

}  // namespace

int verify(const Options& options) {
  if (!options.batch.empty()) return verify_batch(options);
  check_writable("--json", options.json_file);
  TS_USER_CHECK(options.reference != "onnxruntime" || !is_library(options.model), "no-reference")
      << "--ref onnxruntime: expected the ONNX model, got the library " << options.model
      << "; give the model itself, or --ref DIR";
  std::map<std::string, HostTensor> arrays = read_arrays(options);
  const bool from_folder = options.reference != "interp" && options.reference != "onnxruntime";
  DataSet set;
  if (from_folder) {
    TS_USER_CHECK(std::filesystem::is_directory(options.reference), "no-reference")
        << "--ref " << options.reference << ": expected interp, onnxruntime or a folder of arrays, got no folder";
    const auto [input_names, output_names] = port_names(options);
    set = read_data_set(options.reference, input_names, output_names);
    for (auto& [name, array] : set.inputs) arrays.emplace(name, array.clone());
  }
  std::map<std::string, HostTensor> bound;
  for (const auto& [name, array] : arrays) bound.emplace(name, array.clone());
  LoadedModel model = load_model(options, bound, /*keep_graph=*/true, /*references=*/!config()->repro.empty());
  const tensmith_model& description = model.module->model();
  std::vector<HostTensor> inputs = make_inputs(model, options, std::move(arrays));
  Instance instance = make_instance(*model.module, options);
  check_if_asked(model, instance, options, inputs);
  const RunProfile profile(instance);
  const std::vector<HostTensor> outputs = take(instance.run(inputs));

  std::vector<HostTensor> wanted;
  if (from_folder) {
    for (int32_t k = 0; k < description.num_outputs; ++k) {
      const auto it = set.outputs.find(description.outputs[k].name);
      TS_USER_CHECK(it != set.outputs.end(), "no-reference")
          << "--ref " << options.reference << ": expected an array for output " << description.outputs[k].name
          << ", found none";
      wanted.push_back(it->second.clone());
    }
  } else if (options.reference == "onnxruntime") {
    wanted = onnxruntime_outputs(options.model, description, inputs);
  } else {
    TS_USER_CHECK(model.graph.has_value(), "no-reference")
        << "verify " << options.model << ": a library has no graph to interpret; give the model itself, or --ref DIR";
    wanted = interpreter_outputs(*model.graph, inputs);
  }
  bool all = true;
  std::string wrong;
  Json rows = Json::array(), nodes;
  for (size_t k = 0; k < outputs.size(); ++k) {
    const Comparison c = compare(outputs[k], wanted[k], options.rtol, options.atol, /*scale_atol=*/true);
    all = all && c.same;
    if (!c.same) wrong += "output " + std::string(description.outputs[k].name) + ": " + c.text + "\n";
    rows.push_back({{"output", description.outputs[k].name},
                    {"same", c.same},
                    {"max_abs", c.max_abs},
                    {"max_rel_to_scale", c.scale > 0 ? c.max_abs / c.scale : 0},
                    {"scale", c.scale},
                    {"text", c.text}});
    if (!options.json)
      std::cout << (c.same ? "ok       " : "mismatch ") << description.outputs[k].name << ": largest difference "
                << c.max_abs << ", scale " << c.scale << (c.same ? "" : "; " + c.text) << "\n";
  }
  if (!options.json)
    std::cout << (all ? "agrees" : "does not agree") << " with "
              << (options.reference == "interp"        ? "the float64 interpreter of the graph"
                  : options.reference == "onnxruntime" ? "ONNX Runtime"
                                                       : "the arrays in " + options.reference)
              << " (rtol " << options.rtol << ", atol " << options.atol << " of an output's largest element)\n";
  if (!all && options.reference == "interp") rounding_note(*model.graph, inputs, wanted, options);
  if (options.per_node) {
    TS_USER_CHECK(model.graph.has_value(), "no-reference")
        << "verify --per-node: a library has no graph to interpret; give the model itself";
    const NodeReport report = compare_per_node(*model.graph, options, inputs);
    (options.json ? std::cerr : std::cout) << report.text;
    nodes = {{"compared", report.compared}, {"wrong", report.wrong}, {"text", report.text}};
    all = all && report.wrong == 0;
    if (report.wrong) wrong += report.text;
  }
  if (!all) {
    std::cout.flush();
    std::cerr << "note: "
              << (config()->repro.empty()
                      ? "--check compares kernel by kernel, --repro=DIR writes what repeats the difference"
                      : save_reproducer(options, wrong_result(model, instance, options, inputs, wrong)))
              << "\n";
  }
  if (options.json || !options.json_file.empty()) {
    Json json = json_header(provenance("tensmith.verify/1", options, model, instance.threads()));
    json["reference"] = options.reference;
    json["rtol"] = options.rtol;
    json["atol"] = options.atol;
    json["same"] = all;
    json["outputs"] = rows;
    json["per_node"] = nodes;
    if (options.json_file.empty()) std::cout << json_text(json);
    else take(write_json(options.json_file, json));
  }
  return all ? 0 : 4;
}

}  // namespace tensmith::cli
