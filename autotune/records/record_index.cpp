#include "autotune/records/record_index.h"

#include <algorithm>
#include <cstdio>
#include <set>

namespace tensmith {

namespace {

std::string microseconds(double time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g us", time);
  return text;
}

std::string three_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", value);
  return text;
}

std::string layouts_text(const RecordKey& key) {
  std::string text;
  for (const auto* list : {&key.input_layouts, &key.output_layouts}) {
    text += text.empty() ? "" : " -> ";
    for (const std::string& layout : *list) text += (layout.empty() ? "row-major" : layout) + " ";
  }
  return text;
}

}  // namespace

Result<RecordIndex> RecordIndex::read(const std::vector<std::string>& files) {
  RecordIndex index;
  for (const std::string& file : files) {
    Result<RecordLines> lines = read_records(file);
    if (!lines) return lines.failure();
    RecordLines found = std::move(lines).value();
    for (size_t k = 0; k < found.records.size(); ++k)
      index.add(std::move(found.records[k]), file + ":" + std::to_string(found.lines[k]));
    index.bad_.insert(index.bad_.end(), found.bad.begin(), found.bad.end());
  }
  return index;
}

void RecordIndex::add(TuningRecord record, const std::string& where) {
  ++count_;
  std::string workload = record.key.workload;
  by_workload_[std::move(workload)].push_back({std::move(record), where});
}

RecordFound RecordIndex::best(const Workload& workload, const ScheduleRequest& request) const {
  return best(record_key(workload, request), origin_here(request.target));
}

RecordFound RecordIndex::best(const RecordKey& key, const RecordOrigin& here, OtherBuilds others) const {
  RecordFound found;
  const auto entries = by_workload_.find(key.workload);
  if (entries == by_workload_.end()) {
    found.reason = "no record of this workload";
    return found;
  }
  std::string refused;
  std::vector<const TuningRecord*> fitting, of_other_builds;
  std::set<int> other_threads;
  std::set<std::string> other_layouts, failures;
  bool other_arithmetic = false;
  const TuningRecord* unsure = nullptr;
  for (const Entry& entry : entries->second) {
    const TuningRecord& record = entry.record;
    if (record.key.threads != key.threads) {
      other_threads.insert(record.key.threads);
    } else if (record.key.arithmetic != key.arithmetic) {
      other_arithmetic = true;
    } else if (record.key != key) {
      other_layouts.insert(layouts_text(record.key));
    } else if (const std::string difference = origin_difference(record.origin, here); !difference.empty()) {
      refused = entry.where + ": " + difference;
      if (differs_by_build_alone(record.origin, here)) of_other_builds.push_back(&record);
    } else {
      fitting.push_back(&record);
      if (!record.ok()) failures.insert(record.error.empty() ? "no times" : record.error);
      else if (!unsure || record.gain() > unsure->gain()) unsure = &record;
    }
  }
  const std::vector<const TuningRecord*>* from = &fitting;
  found.record = record_to_take(fitting);
  if (!found.record && fitting.empty() && others == OtherBuilds::kTake) {
    from = &of_other_builds;
    found.record = record_to_take(of_other_builds);
  }
  if (found.record) {
    const auto entry = std::find_if(entries->second.begin(), entries->second.end(),
                                    [&](const Entry& e) { return &e.record == found.record; });
    const auto measured = std::count_if(from->begin(), from->end(), [](const TuningRecord* r) { return r->ok(); });
    found.reason =
        std::string(found.record->standing == RecordStanding::kWinner ? "winner of " : "unconfirmed best of ") +
        std::to_string(measured) + (measured == 1 ? " record, " : " records, ") + microseconds(found.record->time_us());
    if (found.record->default_us > 0) found.reason += ", gain " + three_digits(found.record->gain());
    found.reason += ", " + entry->where;
    if (from != &fitting) found.reason += ", made by another build of the tool, so its gain is not sure";
    return found;
  }
  if (unsure) {
    found.reason = "no record that beats the default beyond its own spread: gain " + three_digits(unsure->gain()) +
                   ", spread " + three_digits(unsure->spread());
    if (!(unsure->default_us > 0)) found.reason = "only records without a time of the default beside theirs";
    return found;
  }
  // What comes nearest to a record that serves is said.
  const auto list = [](const auto& items, auto&& text) {
    std::string all;
    for (const auto& item : items) all += (all.empty() ? "" : ", ") + text(item);
    return all;
  };
  if (!failures.empty())
    found.reason = "only failed attempts: " + list(failures, [](const std::string& s) { return s; });
  else if (!refused.empty()) found.reason = "refused: " + refused;
  else if (other_arithmetic) found.reason = "only for other arithmetic: fast-math or contraction differ";
  else if (!other_layouts.empty())
    found.reason = "only for other layouts: " + list(other_layouts, [](const std::string& s) { return s; });
  else
    found.reason = "only for other numbers of threads: " + list(other_threads, [](int n) { return std::to_string(n); });
  return found;
}

std::vector<const TuningRecord*> best_records(const std::vector<TuningRecord>& records) {
  std::vector<std::vector<const TuningRecord*>> of_key;
  std::map<std::pair<RecordKey, std::string>, size_t> known;
  for (const TuningRecord& record : records) {
    const auto [at, fresh] = known.try_emplace({record.key, origin_key(record.origin)}, of_key.size());
    if (fresh) of_key.emplace_back();
    of_key[at->second].push_back(&record);
  }
  std::vector<const TuningRecord*> best;
  for (const auto& list : of_key)
    if (const TuningRecord* taken = record_to_take(list)) best.push_back(taken);
  return best;
}

}  // namespace tensmith
