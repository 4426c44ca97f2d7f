#include "autotune/records/record.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "autotune/records/build_id.h"
#include "runtime/base/quantile.h"
#include "runtime/base/sha256.h"

namespace tensmith {

namespace {

constexpr std::string_view kHead = "{\"check\":\"", kBody = "\",\"record\":";
constexpr size_t kCheckDigits = 16;
constexpr const char* kStandings[] = {"trial", "compared", "winner"};

std::vector<double> sorted(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<std::string> texts_of(const std::vector<Layout>& layouts, size_t count) {
  std::vector<std::string> texts;
  for (size_t k = 0; k < count; ++k) {
    const bool plain = k >= layouts.size() || layouts[k].dims().empty() || layouts[k].is_row_major();
    texts.push_back(plain ? "" : layouts[k].text());
  }
  return texts;
}

/// A target's text without the number of cores.
std::string without_cores(const std::string& target) {
  std::string out;
  for (size_t at = 0; at <= target.size();) {
    const size_t comma = std::min(target.find(',', at), target.size());
    const std::string part = target.substr(at, comma - at);
    if (part.rfind("cores=", 0) != 0) out += (out.empty() ? "" : ",") + part;
    at = comma + 1;
  }
  return out;
}

/// Reads fields of a JSON object; the first that is missing or of another kind spoils all.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}
  bool ok() const { return wrong_.empty(); }
  const std::string& wrong() const { return wrong_; }

  std::string text(const char* name) {
    const Json* item = find(name, &Json::is_string);
    return item ? item->get<std::string>() : std::string();
  }
  int64_t number(const char* name) {
    const Json* item = find(name, &Json::is_number_integer);
    return item ? item->get<int64_t>() : 0;
  }
  bool flag(const char* name) {
    const Json* item = find(name, &Json::is_boolean);
    return item && item->get<bool>();
  }
  /// A finite number from 0 on.
  double amount(const char* name) {
    const Json* item = find(name, &Json::is_number);
    const double value = item ? item->get<double>() : 0;
    if (!(value >= 0) || !std::isfinite(value)) spoil(name);
    return value;
  }
  RecordStanding standing(const char* name) {
    const std::string word = text(name);
    for (size_t k = 0; k < std::size(kStandings); ++k)
      if (word == kStandings[k]) return static_cast<RecordStanding>(k);
    spoil(name);
    return RecordStanding::kTrial;
  }
  /// The same where the field may be missing.
  std::string text_or_none(const char* name) { return json_.contains(name) ? text(name) : std::string(); }
  std::vector<std::string> texts(const char* name) { return list<std::string>(name, &Json::is_string); }
  std::vector<double> numbers(const char* name) { return list<double>(name, &Json::is_number); }
  const Json* find(const char* name, bool (Json::*is_kind)() const noexcept) {
    const auto item = json_.find(name);
    if (item != json_.end() && ((*item).*is_kind)()) return &*item;
    spoil(name);
    return nullptr;
  }

 private:
  void spoil(const char* name) {
    if (wrong_.empty()) wrong_ = name;
  }
  template <typename T>
  std::vector<T> list(const char* name, bool (Json::*is_kind)() const noexcept) {
    std::vector<T> values;
    if (const Json* items = find(name, &Json::is_array))
      for (const Json& item : *items) {
        if ((item.*is_kind)()) values.push_back(item.get<T>());
        else spoil(name);
      }
    return values;
  }

  const Json& json_;
  std::string wrong_;
};

Result<TuningRecord> record_from_json(const Json& json) {
  Reader reader(json);
  TuningRecord record;
  record.label = reader.text("label");
  record.key.workload = reader.text("workload");
  record.key.input_layouts = reader.texts("input_layouts");
  record.key.output_layouts = reader.texts("output_layouts");
  record.key.threads = static_cast<int>(std::clamp<int64_t>(reader.number("threads"), 0, 1 << 20));
  record.key.arithmetic = {reader.flag("fast_math"), reader.flag("contract_fma")};
  record.origin = {reader.text("target"), reader.text("cpu"), reader.text("tool"), reader.text("build")};
  record.times_us = reader.numbers("times_us");
  record.default_us = reader.amount("default_us");
  record.cold_bytes = reader.number("cold_bytes");
  record.peak = {reader.amount("peak_gflops"), reader.amount("peak_cache_gbs"), reader.amount("peak_memory_gbs")};
  record.way = reader.text_or_none("way");
  record.error = reader.text("error");
  record.error_text = reader.text("error_text");
  // Through the sign, so that all 64 bits survive.
  record.seed = static_cast<uint64_t>(reader.number("seed"));
  record.trial = reader.number("trial");
  record.standing = reader.standing("standing");
  record.date = reader.text("date");
  const Json* decisions = reader.find("decisions", &Json::is_object);
  const Json* steps = reader.find("schedule", &Json::is_object);
  if (!reader.ok()) return Failure{"record-foreign", "record: field " + reader.wrong() + " is missing or no such kind"};
  const Result<Decisions> decided = decisions_from_json(*decisions);
  if (!decided) return Failure{"record-foreign", "record: " + decided.failure().message};
  const Result<Trace> trace = trace_from_json(steps->dump());
  if (!trace) return Failure{"record-foreign", "record: " + trace.failure().message};
  for (const double time : record.times_us)
    if (!(time > 0) || !std::isfinite(time)) return Failure{"record-foreign", "record: a time is not above 0"};
  record.decisions = decided.value();
  record.steps = trace->steps;
  return record;
}

}  // namespace

RecordKey record_key(const Workload& workload, const ScheduleRequest& request, const RecordArithmetic& arithmetic) {
  return {to_text(workload), texts_of(request.input_layouts, workload.inputs.size()),
          texts_of(request.output_layouts, workload.outputs.size()), request.threads, arithmetic};
}

RecordOrigin origin_here(const Target& target) {
  return {to_string(target), host_cpu_model(), tool_version(), build_id()};
}

std::string origin_difference(const RecordOrigin& from, const RecordOrigin& here) {
  if (from.tool != here.tool) return "made by version " + from.tool + " of the tool, this is " + here.tool;
  if (from.cpu != here.cpu) return "measured on another CPU: " + from.cpu + ", this is " + here.cpu;
  const std::string before = without_cores(from.target), now = without_cores(here.target);
  if (before != now) return "made for another target: " + before + ", this is for " + now;
  if (from.build != here.build)
    return "made by another build of the tool: " + from.build + ", this is " + here.build +
           "; its schedules or code have changed since";
  return {};
}

bool differs_by_build_alone(const RecordOrigin& from, const RecordOrigin& here) {
  RecordOrigin same = from;
  same.build = here.build;
  return from.build != here.build && origin_difference(same, here).empty();
}

const char* to_string(RecordStanding standing) { return kStandings[static_cast<size_t>(standing)]; }

std::string origin_key(const RecordOrigin& origin) {
  return without_cores(origin.target) + "|" + origin.cpu + "|" + origin.tool + "|" + origin.build;
}

double TuningRecord::time_us() const { return ok() ? quantile(sorted(times_us), 0.5) : 0; }

double TuningRecord::spread() const {
  if (!ok()) return 0;
  const std::vector<double> times = sorted(times_us);
  return (quantile(times, 0.75) - quantile(times, 0.25)) / quantile(times, 0.5);
}

double TuningRecord::gain() const { return ok() ? default_us / time_us() : 0; }

double TuningRecord::sure_gain() const { return gain() / (1 + spread()); }

const TuningRecord* record_to_take(const std::vector<const TuningRecord*>& records) {
  // A time-out may be the machine's; these are the schedule's own.
  static constexpr std::string_view kOwnFaults[] = {"wrong-result", "crashed", "out-of-bounds-write",
                                                    "out-of-bounds-read", "kernel-error"};
  struct Known {
    const TuningRecord* compared = nullptr;  ///< the last time
    const TuningRecord* trial = nullptr;     ///< the first one after all comparisons
  };
  std::map<std::string, Known> schedules;
  std::vector<Known*> order;
  for (const TuningRecord* record : records) {
    const auto [at, fresh] = schedules.try_emplace(tried_text(*record));
    Known& known = at->second;
    if (fresh) order.push_back(&known);
    if (!record->ok()) {
      if (std::find(std::begin(kOwnFaults), std::end(kOwnFaults), record->error) != std::end(kOwnFaults)) known = {};
    } else if (record->standing != RecordStanding::kTrial) {
      // Whoever compared knew all trials before.
      for (Known* other : order) other->trial = nullptr;
      known.compared = record;
    } else if (!known.compared && !known.trial) {
      known.trial = record;
    }
  }
  const TuningRecord* taken = nullptr;
  double gained = 0;
  for (const Known* known : order) {
    if (!known->compared || known->compared->standing != RecordStanding::kWinner) continue;
    // Where the default itself cannot be measured, whatever can be is better.
    const double gain = std::max(1.0, known->compared->gain());
    if (gain <= gained) continue;
    taken = known->compared;
    gained = gain;
  }
  gained = std::max(gained, 1.0);
  for (const Known* known : order) {
    if (!known->trial || known->trial->sure_gain() <= gained) continue;
    taken = known->trial;
    gained = taken->sure_gain();
  }
  return taken;
}

std::string tried_text(const std::vector<Step>& steps) {
  std::string text;
  for (const Step& step : steps) text += to_string(step) + "\n";
  return text;
}

std::string tried_text(const TuningRecord& record) {
  return record.is_choice() ? record.way : tried_text(record.steps);
}

std::string record_date() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::string record_check(std::string_view body) { return sha256_hex(body).substr(0, kCheckDigits); }

std::string record_line(const TuningRecord& record) {
  Json json;
  json["schema"] = kRecordSchema;
  json["label"] = record.label;
  json["workload"] = record.key.workload;
  json["input_layouts"] = record.key.input_layouts;
  json["output_layouts"] = record.key.output_layouts;
  json["threads"] = record.key.threads;
  json["fast_math"] = record.key.arithmetic.fast_math;
  json["contract_fma"] = record.key.arithmetic.contract_fma;
  json["cold_bytes"] = record.cold_bytes;
  json["target"] = record.origin.target;
  json["cpu"] = record.origin.cpu;
  json["tool"] = record.origin.tool;
  json["build"] = record.origin.build;
  if (record.is_choice()) json["way"] = record.way;
  json["decisions"] = to_json(record.decisions);
  // The workload's text stands in the record once.
  json["schedule"] = Json::parse(trace_to_json({"", record.steps}));
  json["times_us"] = record.times_us;
  json["n"] = record.times_us.size();
  json["median_us"] = record.time_us();
  json["spread"] = record.spread();
  json["default_us"] = record.default_us;
  json["peak_gflops"] = record.peak.gflops;
  json["peak_cache_gbs"] = record.peak.cache_gbs;
  json["peak_memory_gbs"] = record.peak.memory_gbs;
  json["error"] = record.error;
  json["error_text"] = record.error_text;
  json["seed"] = static_cast<int64_t>(record.seed);
  json["trial"] = record.trial;
  json["standing"] = to_string(record.standing);
  json["date"] = record.date;
  const std::string body = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string line(kHead);
  line += record_check(body);
  line += kBody;
  line += body;
  return line + "}\n";
}

Result<TuningRecord> parse_record_line(std::string_view line) {
  const size_t start = kHead.size() + kCheckDigits + kBody.size();
  const std::string_view head = kHead.substr(0, std::min(line.size(), kHead.size()));
  if (line.substr(0, head.size()) != head || line.empty())
    return Failure{"record-foreign", "expected a tuning record, got something else"};
  if (line.size() <= start || line.back() != '}') return Failure{"record-torn", "the record ends early"};
  if (line.substr(kHead.size() + kCheckDigits, kBody.size()) != kBody)
    return Failure{"record-flipped", "the check of the record is damaged"};
  const std::string_view check = line.substr(kHead.size(), kCheckDigits);
  const std::string_view body = line.substr(start, line.size() - start - 1);
  if (record_check(body) != check) {
    // Where a line is cut off it ends in two braces only by chance.
    return body.ends_with('}')
               ? Failure{"record-flipped", "the record does not agree with its check; some bytes changed"}
               : Failure{"record-torn", "the record is cut off"};
  }
  const Result<Json> json = parse_json(body);
  if (!json || !json->is_object()) return Failure{"record-foreign", "expected an object as the record"};
  const auto schema = json->find("schema");
  if (schema == json->end() || !schema->is_number_integer()) return Failure{"record-foreign", "no version of the form"};
  if (*schema != kRecordSchema)
    return Failure{"record-old", "expected version " + std::to_string(kRecordSchema) + " of the form, got " +
                                     schema->dump() + "; measure again with this version of the tool"};
  return record_from_json(json.value());
}

}  // namespace tensmith
