#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/cli/commands.h"
#include "apps/cli/model.h"
#include "autotune/records/record_index.h"
#include "runtime/base/files.h"
#include "schedule/lower/lowering.h"
#include "tensor/parse.h"

namespace tensmith::cli {

namespace {

/// What is wrong with the schedule of a record, or "": its workload must parse, each step be legal, and the loops lower
/// and verify.
std::string replay_problem(const TuningRecord& record) {
  if (record.is_choice()) return {};
  const Result<Workload> workload = parse_workload(record.key.workload);
  if (!workload) return "its workload cannot be read: " + workload.failure().message;
  const Result<Schedule> schedule = replay(workload.value(), {record.key.workload, record.steps});
  if (!schedule) return schedule.failure().message;
  try {
    LowerOptions options;
    options.verify_each = true;
    lower(schedule.value(), options);
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

struct Loaded {
  std::vector<TuningRecord> records;
  std::vector<std::string> where;
  std::vector<BadLine> bad;
};

Loaded load(const std::vector<std::string>& files) {
  Loaded all;
  for (const std::string& file : files) {
    RecordLines lines = take(read_records(file));
    for (size_t k = 0; k < lines.records.size(); ++k) {
      all.records.push_back(std::move(lines.records[k]));
      all.where.push_back(file + ":" + std::to_string(lines.lines[k]));
    }
    all.bad.insert(all.bad.end(), lines.bad.begin(), lines.bad.end());
  }
  return all;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

Json json_of(const TuningRecord& record, const std::string& where) {
  Json json;
  json["where"] = where;
  json["label"] = record.label;
  if (record.is_choice()) json["way"] = record.way;
  json["threads"] = record.key.threads;
  json["target"] = record.origin.target;
  json["cpu"] = record.origin.cpu;
  json["tool"] = record.origin.tool;
  json["median_us"] = record.ok() ? Json(record.time_us()) : Json(nullptr);
  json["gain"] = record.gain() > 0 ? Json(record.gain()) : Json(nullptr);
  json["standing"] = to_string(record.standing);
  json["build"] = record.origin.build;
  json["spread"] = record.ok() ? Json(record.spread()) : Json(nullptr);
  json["n"] = record.times_us.size();
  json["error"] = record.error;
  json["date"] = record.date;
  return json;
}

void print(const TuningRecord& record, const std::string& where) {
  char time[96];
  if (record.ok())
    std::snprintf(time, sizeof time, "%10.2f us  +-%4.1f %%  n=%zu  gain %.3f  %-8s", record.time_us(),
                  record.spread() * 50, record.times_us.size(), record.gain(), to_string(record.standing));
  else std::snprintf(time, sizeof time, "%10s %s", "failed:", record.error.substr(0, 40).c_str());
  std::cout << time << "  threads=" << record.key.threads << "  "
            << (record.label.empty() ? first_line(record.key.workload) : record.label) << "  " << where << "\n";
}

void tell_bad(const std::vector<BadLine>& bad) {
  for (const BadLine& line : bad) std::cerr << "note: skipped " << to_string(line) << "\n";
}

/// Lists records; those of `best` alone when it is asked for.
int list(const Options& options, const Loaded& all, bool only_best) {
  std::vector<const TuningRecord*> shown;
  if (only_best) shown = best_records(all.records);
  else
    for (const TuningRecord& record : all.records) shown.push_back(&record);
  Json json = json_header({"tensmith.records/1", "", 0, 0, ""});
  json["records"] = Json::array();
  json["skipped"] = Json::array();
  for (const TuningRecord* record : shown) {
    const std::string& where = all.where[static_cast<size_t>(record - all.records.data())];
    if (options.json) json["records"].push_back(json_of(*record, where));
    else print(*record, where);
  }
  if (options.json) {
    for (const BadLine& line : all.bad) json["skipped"].push_back(to_string(line));
    std::cout << json_text(json);
  } else {
    std::cout << shown.size() << (only_best ? " best of " + std::to_string(all.records.size()) : "") << " records, "
              << all.bad.size() << " lines skipped\n";
  }
  return 0;
}

/// Writes records into one new file, whole or not at all.
void write(const Options& options, const std::vector<const TuningRecord*>& records) {
  TS_USER_CHECK(!options.output.empty(), "bad-usage")
      << "records " << options.action << ": expected a file for the result, got none; add -o OUT.jsonl";
  std::string text;
  for (const TuningRecord* record : records) text += record_line(*record);
  take(write_file(options.output, text));
}

int merge(const Options& options, const Loaded& all) {
  // Equal records, which several files hold after an earlier merge, count once.
  std::map<std::string, bool> seen;
  std::vector<const TuningRecord*> kept;
  for (const TuningRecord& record : all.records)
    if (seen.try_emplace(record_line(record)).second) kept.push_back(&record);
  write(options, kept);
  std::cout << options.output << ": " << kept.size() << " records of " << all.records.size() << " in "
            << options.files.size() << " files, " << all.bad.size() << " lines skipped\n";
  return 0;
}

int prune(const Options& options, const Loaded& all) {
  const std::vector<const TuningRecord*> kept = best_records(all.records);
  write(options, kept);
  std::cout << options.output << ": the best of each task, " << kept.size() << " records of " << all.records.size()
            << "\n";
  return 0;
}

int check(const Options& options, const Loaded& all) {
  size_t illegal = 0;
  for (size_t k = 0; options.replay && k < all.records.size(); ++k) {
    const std::string problem = all.records[k].ok() ? replay_problem(all.records[k]) : std::string();
    if (problem.empty()) continue;
    ++illegal;
    std::cout << all.where[k] << ": the schedule is not legal: " << problem << "\n";
  }
  for (const BadLine& line : all.bad) std::cout << to_string(line) << "\n";
  std::cout << all.records.size() << " records are whole, " << all.bad.size() << " lines are none";
  if (options.replay) std::cout << ", " << illegal << " schedules are not legal";
  std::cout << "\n";
  return all.bad.empty() && illegal == 0 ? 0 : exit_code(ErrorKind::kMismatch);
}

/// The best schedules as C++ that compiles.
int export_best(const Options& options, const Loaded& all) {
  std::string text = "#include \"schedule/schedule.h\"\n\n";
  std::vector<const TuningRecord*> best = best_records(all.records);
  std::erase_if(best, [](const TuningRecord* record) { return record->is_choice(); });
  for (size_t k = 0; k < best.size(); ++k) {
    char head[160];
    std::snprintf(head, sizeof head, "// %.2f us, %d threads, ", best[k]->time_us(), best[k]->key.threads);
    std::string workload = best[k]->key.workload;
    for (size_t at = 0; (at = workload.find('\n', at)) != std::string::npos; at += 4) workload.replace(at, 1, "\n// ");
    text += head + best[k]->origin.cpu + ", version " + best[k]->origin.tool + "\n// " + workload + "\n" +
            trace_to_cpp({best[k]->key.workload, best[k]->steps}, "schedule_" + std::to_string(k)) + "\n";
  }
  if (options.output.empty()) {
    std::cout << text;
  } else {
    take(write_file(options.output, text));
    std::cout << options.output << ": " << best.size() << " schedules\n";
  }
  return 0;
}

}  // namespace

int records(const Options& options) {
  TS_USER_CHECK(!options.files.empty(), "bad-usage")
      << "records " << options.action << ": expected files of records, got none";
  const Loaded all = load(options.files);
  if (options.action != "verify" && !options.json) tell_bad(all.bad);
  if (options.action == "ls") return list(options, all, /*only_best=*/false);
  if (options.action == "best") return list(options, all, /*only_best=*/true);
  if (options.action == "merge") return merge(options, all);
  if (options.action == "prune") return prune(options, all);
  if (options.action == "verify") return check(options, all);
  return export_best(options, all);
}

}  // namespace tensmith::cli
