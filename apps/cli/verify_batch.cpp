#include "apps/cli/verify_batch.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <fstream>

#include "apps/cli/compare.h"
#include "apps/cli/model.h"
#include "runtime/base/files.h"
#include "runtime/npy.h"

namespace tensmith::cli {

namespace {

struct Answer {
  std::string status, reason, text;
};

Answer run_entry(const Json& entry, const Options& given) {
  Options options = given;
  options.model = entry.at("model").get<std::string>();
  options.inputs.clear();
  std::map<std::string, HostTensor> arrays;
  for (const Json& input : entry.value("inputs", Json::array()))
    arrays.emplace(input.at("name").get<std::string>(), take(read_npy(input.at("file").get<std::string>())));
  std::map<std::string, HostTensor> bound;
  for (const auto& [name, array] : arrays) bound.emplace(name, array.clone());
  LoadedModel model = load_model(options, bound, /*keep_graph=*/true);
  std::vector<HostTensor> inputs = make_inputs(model, options, std::move(arrays));
  Instance instance = make_instance(*model.module, options);
  const std::vector<HostTensor> outputs = take(instance.run(inputs));
  const Json wanted = entry.value("outputs", Json::array());
  const double rtol = entry.value("rtol", 1e-3), atol = entry.value("atol", 1e-7);
  std::vector<HostTensor> references;
  if (wanted.empty()) {
    references = interpreter_outputs(*model.graph, inputs);
  } else {
    if (wanted.size() != outputs.size())
      return {"mismatch", "output-count",
              "expected " + std::to_string(wanted.size()) + " outputs, got " + std::to_string(outputs.size())};
    for (const Json& output : wanted) references.push_back(take(read_npy(output.at("file").get<std::string>())));
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    const Json own = wanted.empty() ? Json::object() : wanted[k];
    const Comparison c =
        compare(outputs[k], references[k], own.value("rtol", rtol), own.value("atol", atol), /*scale_atol=*/false);
    if (!c.same) return {"mismatch", "output-differs", "output " + std::to_string(k) + ": " + c.text};
  }
  return {"pass", "", ""};
}

}  // namespace

int verify_batch(const Options& options) {
  const Json list = take(parse_json(take(read_file(options.batch))));
  const Json schema = list.is_object() ? list.value("schema", Json()) : Json();
  TS_USER_CHECK(schema == "tensmith-batch-1", "bad-batch")
      << "--batch " << options.batch << ": expected an object of schema \"tensmith-batch-1\", got schema "
      << schema.dump();
  TS_USER_CHECK(list.contains("entries") && list["entries"].is_array(), "bad-batch")
      << "--batch " << options.batch << ": expected a list 'entries', got none";
  for (const Json& entry : list["entries"])
    TS_USER_CHECK(entry.is_object() && entry.contains("id"), "bad-batch")
        << "--batch " << options.batch << ": expected every entry to be an object with an id, got "
        << entry.dump().substr(0, 80);
  TS_USER_CHECK(!options.json_file.empty(), "bad-batch") << "--batch: expected --json OUT.jsonl for the answers";
  std::ofstream out(options.json_file);
  TS_USER_CHECK(out.good(), "cannot-write") << "--json " << options.json_file << ": cannot be written";
  for (const Json& entry : list.at("entries")) {
    const auto start = std::chrono::steady_clock::now();
    Answer answer;
    try {
      answer = run_entry(entry, options);
    } catch (const Error& e) {
      // An opset that is too old and sizes that nobody gives are refusals too.
      const bool refused = e.kind() == ErrorKind::kUnsupported || e.id() == "bad-opset" || e.id() == "symbolic-dims";
      answer = {refused ? "unsupported" : "error", e.id(), e.message().substr(0, 2000)};
    } catch (const Json::exception& e) {
      answer = {
          "error", "bad-batch",
          std::string("entry of ") + options.batch + ": expected the form of " + "tests/harness/batch.py: " + e.what()};
    } catch (const std::exception& e) {
      answer = {"error", "exception", e.what()};
    }
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    out << Json{{"id", entry.at("id")},
                {"status", answer.status},
                {"reason", answer.reason},
                {"text", answer.text},
                {"ms", ms}}
               .dump(-1, ' ', false, Json::error_handler_t::replace)
        << std::endl;
  }
  return 0;
}

}  // namespace tensmith::cli
