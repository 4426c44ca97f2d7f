#include "apps/cli/tune_choices.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>

#include "apps/cli/compare.h"
#include "apps/driver/choices.h"
#include "autotune/records/record_file.h"
#include "runtime/base/format.h"

namespace tensmith::cli {

namespace {

// Programs beside the usual one; more of them have fewer runs in the same time.
constexpr size_t kAtOnce = 4;
constexpr double kSeconds = 2.5;
constexpr int kFewestRounds = 10;
// The gain of the kernels that a way changes from which it is looked at again when noise hides whether there is one.
constexpr double kPromising = 1.003;

/// A way at a place, and what became of it.
struct Trial {
  size_t place = 0, way = 0;
  ChoiceVerdict verdict;
  std::string error, error_text;  ///< as in TuningRecord
};

class ChoiceTrials {
 public:
  ChoiceTrials(const Options& options, const LoadedModel& usual, const RecordOrigin& origin,
               const WholeListener& listener)
      : options_(options),
        usual_(usual),
        origin_(origin),
        compile_(compile_options(options)),
        writer_(take(RecordWriter::open(options.output))),
        listener_([this, &listener](const std::string& what) { return goes_on_ = listener(what); }) {}

  bool goes_on() const { return goes_on_; }

  /// Tries them together; what cannot be compiled or computes something else has an error then.
  void run(std::span<Trial> trials, const RecordIndex& known) {
    std::vector<LoadedModel> models;
    std::vector<Trial*> running;
    for (Trial& trial : trials) {
      if (!listener_("graph: compiling with " + name_of(trial))) return;
      auto index = std::make_shared<RecordIndex>(known);
      index->add(forced(trial), options_.output);
      try {
        models.push_back(load_tuned(options_, std::move(index)));
        running.push_back(&trial);
      } catch (const Error& e) {
        trial.error = "compile-error";
        trial.error_text = e.what();
      }
    }
    if (running.empty()) return;
    std::vector<LoadedModel*> sides;
    for (LoadedModel& model : models) sides.push_back(&model);
    const std::vector<ChoiceVerdict> verdicts = compare(sides, running, kSeconds);
    for (size_t k = 0; k < verdicts.size(); ++k) {
      running[k]->verdict = verdicts[k];
      // What may be better has another, longer look alone beside the usual program.
      if (!running[k]->error.empty() || verdicts[k].is_better || verdicts[k].gain <= kPromising) continue;
      if (const std::vector<ChoiceVerdict> again = compare({sides[k]}, {running[k]}, 2 * kSeconds); !again.empty())
        running[k]->verdict = again[0];
    }
  }

  /// Whether these ways together hold what they promise.
  bool holds(const std::vector<const Trial*>& taken, const RecordIndex& known) {
    if (!listener_(format_text("graph: compiling with %zu ways together", taken.size()))) return false;
    auto index = std::make_shared<RecordIndex>(known);
    for (const Trial* trial : taken) index->add(forced(*trial), options_.output);
    LoadedModel model = load_tuned(options_, std::move(index));
    Trial together;
    const std::vector<ChoiceVerdict> verdicts = compare({&model}, {&together}, 2 * kSeconds);
    return !verdicts.empty() && together.error.empty() && verdicts[0].is_better;
  }

  void save(const Trial& trial, bool is_taken) {
    TuningRecord record = record_of(trial.place, trial.way);
    record.error = trial.error;
    record.error_text = trial.error_text;
    if (record.error.empty()) {
      record.times_us = few_times(trial.verdict.other_us);
      record.default_us = record.time_us() * trial.verdict.gain;
    }
    record.standing = is_taken ? RecordStanding::kWinner : RecordStanding::kCompared;
    take(writer_.append(record));
  }
  /// The estimate's own way is what stands.
  void save_usual(const Trial& beside) {
    TuningRecord record = record_of(beside.place, site(beside.place).by_price);
    record.times_us = few_times(beside.verdict.usual_us);
    record.default_us = record.time_us();
    record.standing = RecordStanding::kWinner;
    take(writer_.append(record));
  }

  RecordKey key_of(size_t place) const {
    return choice_key(usual_.program->choices.structure, site(place), usual_.program->threads,
                      {compile_.fast_math, compile_.contract_fma});
  }
  std::string name_of(const Trial& trial) const {
    return site(trial.place).name + ": " + site(trial.place).ways[trial.way];
  }

 private:
  const graph::ChoiceSite& site(size_t place) const { return usual_.program->choices.list[place].site; }

  TuningRecord record_of(size_t place, size_t way) const {
    TuningRecord record;
    record.key = key_of(place);
    record.origin = origin_;
    record.way = site(place).ways[way];
    record.seed = static_cast<uint64_t>(options_.seed);
    record.trial = -1;
    record.label = site(place).name + ": " + record.way;
    record.date = record_date();
    return record;
  }
  /// A record that makes the compiler take the way.
  TuningRecord forced(const Trial& trial) const {
    TuningRecord record = record_of(trial.place, trial.way);
    record.times_us = {1};
    record.default_us = 1e6;
    record.standing = RecordStanding::kWinner;
    return record;
  }

  std::vector<ChoiceVerdict> compare(const std::vector<LoadedModel*>& models, const std::vector<Trial*>& trials,
                                     double seconds) {
    std::vector<InModelSide> sides;
    sides.push_back(side_of(usual_, options_));
    for (const LoadedModel* model : models) sides.push_back(side_of(*model, options_));
    for (size_t k = 0; k < models.size(); ++k)
      for (size_t output = 0; output < sides[0].outputs.size(); ++output) {
        const Comparison same = tensmith::cli::compare(sides[k + 1].outputs[output], sides[0].outputs[output],
                                                       options_.rtol, options_.atol, /*scale_atol=*/true);
        if (same.same || !trials[k]->error.empty()) continue;
        trials[k]->error = "wrong-result";
        trials[k]->error_text = format_text("output %zu differs by %.3g", output, same.max_abs);
      }
    InModelLimits limits;
    limits.seconds = seconds;
    limits.min_rounds = kFewestRounds;
    limits.go_on = told_of(format_text("graph, %zu programs in turns", sides.size()), listener_);
    const std::vector<InModelTimes> times = take(time_in_model(sides, limits));
    std::vector<ChoiceVerdict> verdicts;
    if (!goes_on_) return verdicts;
    for (size_t k = 0; k < models.size(); ++k) {
      verdicts.push_back(judge_choice(*usual_.program, times[0], *models[k]->program, times[k + 1]));
      const auto nothing = [](double us) { return us == 0; };
      if (trials[k]->error.empty() && std::all_of(verdicts[k].other_us.begin(), verdicts[k].other_us.end(), nothing)) {
        trials[k]->error = "no-effect";
        trials[k]->error_text = "the kernels are those of the estimate's way";
      }
    }
    return verdicts;
  }

  const Options& options_;
  const LoadedModel& usual_;
  const RecordOrigin& origin_;
  const CompileOptions compile_;
  RecordWriter writer_;
  bool goes_on_ = true;
  const WholeListener listener_;
};

/// Records of choices in the file.
std::vector<TuningRecord> choice_records(const std::string& path) {
  std::vector<TuningRecord> records;
  if (!std::filesystem::exists(path)) return records;
  RecordLines lines = take(read_records(path));
  for (TuningRecord& record : lines.records)
    if (record.is_choice()) records.push_back(std::move(record));
  return records;
}

}  // namespace

ChosenWays chosen_before(const Options& options, const LoadedModel& usual) {
  ChosenWays chosen;
  chosen.records = std::make_shared<RecordIndex>();
  for (TuningRecord& record : choice_records(options.output)) chosen.records->add(std::move(record), options.output);
  const CompileOptions compile = compile_options(options);
  const RecordOrigin here = origin_here(compile.target);
  for (const MadeChoice& choice : usual.program->choices.list) {
    const RecordKey key = choice_key(usual.program->choices.structure, choice.site, usual.program->threads,
                                     {compile.fast_math, compile.contract_fma});
    const RecordFound found = chosen.records->best(key, here, compile.other_builds);
    if (!found.record || found.record->way == choice.site.ways[choice.site.by_price]) continue;
    chosen.any = true;
    chosen.text += (chosen.text.empty() ? "" : "\n") + ("graph: " + found.record->label) +
                   format_text(", gain %.3f of the kernels that it changes", found.record->gain());
  }
  return chosen;
}

ChosenWays choose_ways(const Options& options, const LoadedModel& usual, const RecordOrigin& origin,
                       double most_seconds, const WholeListener& listener) {
  const std::vector<MadeChoice>& places = usual.program->choices.list;
  ChoiceTrials run(options, usual, origin, listener);
  std::set<std::pair<RecordKey, std::string>> tried;
  for (const TuningRecord& record : choice_records(options.output))
    if (origin_difference(record.origin, origin).empty()) tried.emplace(record.key, record.way);
  std::vector<Trial> trials;
  for (size_t place = 0; place < places.size(); ++place)
    for (size_t way = 0; way < places[place].site.ways.size(); ++way)
      if (way != places[place].site.by_price && !tried.count({run.key_of(place), places[place].site.ways[way]}))
        trials.push_back({place, way, {}, {}, {}});
  if (trials.empty()) return chosen_before(options, usual);

  const auto begin = std::chrono::steady_clock::now();
  const auto is_over = [&] {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    // The last comparison, of what is taken, takes about as long as each.
    return !run.goes_on() || (most_seconds > 0 && spent.count() + 2 * kSeconds > most_seconds);
  };
  // Ways are tried beside the estimates alone: what one changes does not depend on which others stand.
  const RecordIndex none;
  const size_t at_once = std::min(kAtOnce, programs_at_once(usual));
  size_t done = 0;
  while (done < trials.size() && !is_over()) {
    const size_t count = std::min(at_once, trials.size() - done);
    run.run(std::span(trials).subspan(done, count), none);
    if (run.goes_on()) done += count;
  }
  trials.resize(done);

  // At each place what saves most, and of these what saves most first.
  std::vector<const Trial*> taken;
  for (size_t place = 0; place < places.size(); ++place) {
    const Trial* best = nullptr;
    for (const Trial& trial : trials)
      if (trial.place == place && trial.error.empty() && trial.verdict.is_better &&
          (!best || trial.verdict.saved_us > best->verdict.saved_us))
        best = &trial;
    if (best) taken.push_back(best);
  }
  std::stable_sort(taken.begin(), taken.end(),
                   [](const Trial* a, const Trial* b) { return a->verdict.saved_us > b->verdict.saved_us; });
  while (!taken.empty() && !run.holds(taken, none)) {
    if (!run.goes_on()) return chosen_before(options, usual);
    taken.resize(taken.size() / 2);
  }
  std::set<size_t> served;
  for (const Trial* trial : taken) served.insert(trial->place);
  for (const Trial& trial : trials) {
    run.save(trial, std::find(taken.begin(), taken.end(), &trial) != taken.end());
    if (trial.error.empty() && served.insert(trial.place).second) run.save_usual(trial);
  }
  ChosenWays chosen = chosen_before(options, usual);
  chosen.text = format_text("graph: %zu other ways at %zu places tried, %zu taken", done, places.size(), taken.size()) +
                (chosen.text.empty() ? "" : "\n" + chosen.text);
  return chosen;
}

}  // namespace tensmith::cli
