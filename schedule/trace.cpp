#include "schedule/trace.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/json.h"
#include "schedule/primitive_def.h"

namespace tensmith {

namespace {

constexpr const char* kSchema = "tensmith.schedule/1";

Json arg_to_json(const StepArg& arg) {
  return std::visit([](const auto& value) { return Json(value); }, arg);
}

bool is_list_of(const Json& json, bool (Json::*is_kind)() const noexcept) {
  return json.is_array() && std::all_of(json.begin(), json.end(), [&](const Json& item) { return (item.*is_kind)(); });
}

Result<StepArg> arg_from_json(const ArgSpec& spec, const Json& json) {
  const auto wrong = [&](const char* expected) {
    return Failure{"bad-trace", std::string(spec.name) + ": expected " + expected};
  };
  switch (spec.kind) {
    case ArgKind::kInt:
      if (!json.is_number_integer()) return wrong("a whole number");
      return StepArg(json.get<int64_t>());
    case ArgKind::kInts:
      if (!is_list_of(json, &Json::is_number_integer)) return wrong("a list of whole numbers");
      return StepArg(json.get<std::vector<int64_t>>());
    case ArgKind::kLoops:
    case ArgKind::kNewNames:
      if (!is_list_of(json, &Json::is_string)) return wrong("a list of texts");
      return StepArg(json.get<std::vector<std::string>>());
    default:
      if (!json.is_string()) return wrong("a text");
      return StepArg(json.get<std::string>());
  }
}

Result<Step> step_from_json(const Json& json) {
  if (!json.is_object() || !json.contains("primitive") || !json["primitive"].is_string() || !json.contains("args") ||
      !json["args"].is_object())
    return Failure{"bad-trace", "expected an object with a text 'primitive' and an object 'args'"};
  Step step{json["primitive"].get<std::string>(), {}};
  const PrimitiveDef* def = find_primitive(step.primitive);
  if (!def) return Failure{"bad-trace", unknown_primitive(step.primitive).message};
  for (const auto& [name, value] : json["args"].items()) {
    const auto spec =
        std::find_if(def->args.begin(), def->args.end(), [&](const ArgSpec& s) { return name == s.name; });
    if (spec == def->args.end()) return Failure{"bad-trace", step.primitive + " has no argument '" + name + "'"};
    Result<StepArg> arg = arg_from_json(*spec, value);
    if (!arg) return Failure{arg.failure().id, step.primitive + ": " + arg.failure().message};
    step.args.emplace_back(name, *arg);
  }
  return step;
}

/// The first line that differs, as `line 3: 'a' and 'b'`.
std::string first_difference(std::string_view a, std::string_view b) {
  for (int line = 1;; ++line) {
    const std::string_view left = a.substr(0, a.find('\n')), right = b.substr(0, b.find('\n'));
    if (left != right || (a.empty() && b.empty()))
      return "line " + std::to_string(line) + ": '" + std::string(left) + "' and '" + std::string(right) + "'";
    a.remove_prefix(std::min(left.size() + 1, a.size()));
    b.remove_prefix(std::min(right.size() + 1, b.size()));
  }
}

std::string cpp_string(const std::string& value) {
  std::string out = "\"";
  for (char c : value) {
    if (c == '"' || c == '\\' || c == '?') (out += '\\') += c;  // '?' because of trigraphs
    else if (static_cast<unsigned char>(c) < ' ' || c == 127) {
      char octal[8];
      std::snprintf(octal, sizeof octal, "\\%03o", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += octal;
    } else out += c;
  }
  return out + "\"";
}

struct CppPrinter {
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(const std::string& value) const { return cpp_string(value); }
  template <typename T>
  std::string operator()(const std::vector<T>& values) const {
    std::string out = "{";
    for (const T& value : values) out += (out.size() > 1 ? ", " : "") + (*this)(value);
    return out + "}";
  }
};

/// A call of the method of Schedule that each primitive has, with the arguments of its schema in order.
std::string cpp_of(const Step& step) {
  const PrimitiveDef* def = find_primitive(step.primitive);
  TS_CHECK(def != nullptr) << step.primitive;
  std::string arguments;
  for (const ArgSpec& spec : def->args) {
    const StepArg* given = step.find(spec.name);
    TS_CHECK(given || spec.default_text) << to_string(step) << " without " << spec.name;
    const StepArg value = given ? *given : default_arg(spec);
    if (!arguments.empty()) arguments += ", ";
    if (spec.name == std::string_view("tail")) {
      static constexpr const char* kNames[] = {"kGuard", "kPeel", "kShiftInwards", "kPad"};
      arguments +=
          std::string("tensmith::Tail::") + kNames[static_cast<int>(*parse_tail(std::get<std::string>(value)))];
    } else {
      arguments += std::visit(CppPrinter{}, value);
    }
  }
  return "s." + step.primitive + "(" + arguments + ");";
}

}  // namespace

Trace trace_of(const Schedule& schedule) { return {to_text(schedule.workload()), schedule.steps()}; }

std::string trace_to_json(const Trace& trace) {
  Json json;
  json["schema"] = kSchema;
  json["workload"] = trace.workload;
  json["steps"] = Json::array();
  for (const Step& step : trace.steps) {
    Json args = Json::object();
    for (const auto& [name, value] : step.args) args[name] = arg_to_json(value);
    json["steps"].push_back({{"primitive", step.primitive}, {"args", args}});
  }
  return json_text(json);
}

Result<Trace> trace_from_json(std::string_view text) {
  const Result<Json> parsed = parse_json(text);
  if (!parsed) return parsed.failure();
  const Json& json = *parsed;
  if (!json.is_object() || !json.contains("schema") || !json["schema"].is_string())
    return Failure{"trace-schema", std::string("schedule: expected an object with \"schema\": \"") + kSchema + "\""};
  if (json["schema"] != kSchema)
    return Failure{"trace-schema", std::string("schedule: expected schema ") + kSchema + ", got " +
                                       json["schema"].get<std::string>() + "; this version of the tool cannot read it"};
  if (!json.contains("workload") || !json["workload"].is_string() || !json.contains("steps") ||
      !json["steps"].is_array())
    return Failure{"bad-trace", "schedule: expected a text 'workload' and a list 'steps'"};
  Trace trace{json["workload"].get<std::string>(), {}};
  for (const Json& item : json["steps"]) {
    Result<Step> step = step_from_json(item);
    if (!step)
      return Failure{"bad-trace",
                     "schedule: step " + std::to_string(trace.steps.size() + 1) + ": " + step.failure().message};
    trace.steps.push_back(*step);
  }
  return trace;
}

Result<Schedule> replay(const Workload& workload, const Trace& trace, ReplayOn on) {
  if (const std::string text = to_text(workload); on == ReplayOn::kSameWorkload && text != trace.workload)
    return Failure{"trace-workload", "schedule: made for another workload than " + workload.name +
                                         ": first difference in " + first_difference(trace.workload, text) +
                                         "; replay it as one for any workload if that is meant"};
  Schedule schedule(workload);
  for (size_t k = 0; k < trace.steps.size(); ++k)
    if (const Result<void> ok = schedule.try_apply(trace.steps[k]); !ok)
      return Failure{ok.failure().id, "schedule of " + workload.name + ": step " + std::to_string(k + 1) + " of " +
                                          std::to_string(trace.steps.size()) + " (" + to_string(trace.steps[k]) +
                                          ") does not apply: " + ok.failure().message};
  return schedule;
}

Result<Schedule> mutate(const Schedule& schedule, Rng& rng) {
  const std::vector<Step>& steps = schedule.steps();
  std::vector<size_t> deciding;
  for (size_t k = 0; k < steps.size(); ++k)
    if (find_primitive(steps[k].primitive)->draw) deciding.push_back(k);
  if (deciding.empty())
    return Failure{"no-decision", "schedule of " + schedule.workload().name +
                                      ": none of its steps decides at random; use sample_tile, sample_categorical or "
                                      "sample_location"};
  constexpr int kTries = 64;
  for (int t = 0; t < kTries; ++t) {
    const size_t changed = deciding[rng.below(deciding.size())];
    Schedule other(schedule.workload(), rng.next());
    bool legal = true;
    for (size_t k = 0; k < steps.size() && legal; ++k) {
      Step step = steps[k];
      if (k == changed) {
        for (auto& [name, value] : step.args)
          if (name == "decision") value = std::vector<int64_t>();
        legal = draw_decision(other.state(), step, rng).ok() && !(step == steps[k]);
      }
      legal = legal && other.try_apply(step).ok();
    }
    if (legal) return other;
  }
  return Failure{"no-other-decision", "schedule of " + schedule.workload().name + ": in " + std::to_string(kTries) +
                                          " draws there was no other decision under which all steps are legal"};
}

std::string trace_diff(const Trace& from, const Trace& to) {
  if (from == to) return {};
  std::string out;
  if (from.workload != to.workload) out += "workloads differ in " + first_difference(from.workload, to.workload) + "\n";
  // Longest common subsequence, from the end.
  const size_t n = from.steps.size(), m = to.steps.size();
  std::vector<std::vector<int>> longest(n + 1, std::vector<int>(m + 1));
  for (size_t i = n; i-- > 0;)
    for (size_t j = m; j-- > 0;)
      longest[i][j] =
          from.steps[i] == to.steps[j] ? longest[i + 1][j + 1] + 1 : std::max(longest[i + 1][j], longest[i][j + 1]);
  for (size_t i = 0, j = 0; i < n || j < m;) {
    if (i < n && j < m && from.steps[i] == to.steps[j]) {
      out += "  " + to_string(from.steps[i]) + "\n";
      ++i, ++j;
    } else if (i < n && (j == m || longest[i + 1][j] >= longest[i][j + 1])) {
      out += "- " + to_string(from.steps[i++]) + "\n";
    } else {
      out += "+ " + to_string(to.steps[j++]) + "\n";
    }
  }
  return out;
}

std::string trace_to_cpp(const Trace& trace, const std::string& name) {
  std::string out = "void " + name + "([[maybe_unused]] tensmith::Schedule& s) {\n";
  for (const Step& step : trace.steps) out += "  " + cpp_of(step) + "\n";
  return out + "}\n";
}

}  // namespace tensmith
