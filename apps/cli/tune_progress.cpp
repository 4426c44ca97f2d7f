#include "apps/cli/tune_progress.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include <cmath>
#include <iostream>

#include "runtime/base/format.h"

namespace tensmith::cli {

namespace {

std::string duration_text(double seconds) {
  if (seconds < 100) return format_text("%.0f s", seconds);
  return format_text("%d min %02d s", static_cast<int>(seconds / 60), static_cast<int>(seconds) % 60);
}

}  // namespace

Result<ProgressStyle> parse_progress_style(const std::string& style) {
  if (style == "auto") return isatty(STDERR_FILENO) ? ProgressStyle::kBar : ProgressStyle::kPlain;
  if (style == "bar") return ProgressStyle::kBar;
  if (style == "plain") return ProgressStyle::kPlain;
  if (style == "jsonl") return ProgressStyle::kJsonl;
  if (style == "none") return ProgressStyle::kNone;
  return Failure{"bad-progress", "option --progress: expected auto, bar, plain, jsonl or none, got '" + style + "'"};
}

TuneProgress::TuneProgress(ProgressStyle style, const std::vector<TuningTask>& tasks, const TunerOptions& options)
    : style_(style), tasks_(tasks), options_(options) {}

std::string TuneProgress::line(const TunerProgress& now) const {
  const TaskProgress& task = (*now.tasks)[static_cast<size_t>(now.task)];
  std::string line =
      format_text("%s  trial %lld", duration_text(now.elapsed_s).c_str(), static_cast<long long>(now.trial + 1));
  if (options_.trials > 0) line += format_text(" of %lld", static_cast<long long>(options_.trials));
  line +=
      format_text("  task %d %s: best %s (%.2fx)", now.task, tasks_[static_cast<size_t>(now.task)].label.c_str(),
                  time_text(task.best_us).c_str(), std::isfinite(task.best_us) ? task.default_us / task.best_us : 1.0);
  if (now.model_best_us > 0)
    line += format_text("  all %s -> %s (%.3fx)", time_text(now.model_default_us).c_str(),
                        time_text(now.model_best_us).c_str(), now.model_default_us / now.model_best_us);
  double left = -1;
  if (options_.seconds > 0) left = std::max(0.0, options_.seconds - now.elapsed_s);
  if (options_.trials > 0 && now.trial > 0) {
    const double by_trials =
        now.elapsed_s / static_cast<double>(now.trial + 1) * static_cast<double>(options_.trials - now.trial - 1);
    left = left < 0 ? by_trials : std::min(left, by_trials);
  }
  if (left >= 0) line += "  at most " + duration_text(left) + " left";
  if (!failures_.empty()) {
    line += "  failed:";
    for (const auto& [kind, count] : failures_)
      line += format_text(" %s %lld", kind.c_str(), static_cast<long long>(count));
  }
  return line;
}

void TuneProgress::operator()(const TunerProgress& now) {
  if (!now.outcome->ok()) ++failures_[now.outcome->error];
  if (style_ == ProgressStyle::kNone) return;
  if (style_ == ProgressStyle::kJsonl) {
    Json json{{"trial", now.trial},
              {"task", now.task},
              {"label", tasks_[static_cast<size_t>(now.task)].label},
              {"origin", now.origin},
              {"elapsed_s", now.elapsed_s}};
    if (now.outcome->ok()) json["cost_us"] = now.outcome->cost_us;
    else json["error"] = now.outcome->error;
    json["model_default_us"] = now.model_default_us;
    json["model_best_us"] = now.model_best_us;
    std::cout << json.dump() << std::endl;
    return;
  }
  // The eye follows some changes a second; a log wants news only.
  const bool news = now.model_best_us < shown_model_us_ * 0.998 && now.elapsed_s > shown_s_ + 1;
  const double pause = style_ == ProgressStyle::kBar ? 0.2 : 10;
  if (now.elapsed_s < shown_s_ + pause && !(style_ == ProgressStyle::kPlain && news)) return;
  shown_s_ = now.elapsed_s;
  shown_model_us_ = now.model_best_us;
  show(line(now));
}

void TuneProgress::say(const std::string& what) {
  if (style_ == ProgressStyle::kNone) return;
  const std::string phase = what.substr(0, what.find(':'));
  const auto now = std::chrono::steady_clock::now();
  const double since = std::chrono::duration<double>(now - said_).count();
  if (phase == phase_ && since < (style_ == ProgressStyle::kBar ? 0.2 : 10)) return;
  phase_ = phase;
  said_ = now;
  if (style_ == ProgressStyle::kJsonl) std::cout << Json{{"phase", what}}.dump() << std::endl;
  else show(what);
}

void TuneProgress::show(std::string shown) {
  if (style_ == ProgressStyle::kPlain) {
    std::cerr << shown << std::endl;
    return;
  }
  constexpr size_t kColumns = 160;
  if (shown.size() > kColumns) shown.resize(kColumns);
  const size_t width = shown.size();
  if (width < width_) shown += std::string(width_ - width, ' ');
  width_ = width;
  std::cerr << "\r" << shown << std::flush;
}

void TuneProgress::finish() {
  if (style_ == ProgressStyle::kBar && width_ > 0) std::cerr << "\n";
  width_ = 0;
}

std::string tuning_table(const std::vector<TuningTask>& tasks, const TuningReport& report) {
  std::string table = format_text("%4s %5s %-44s %7s %7s %10s %10s %6s %8s  %s\n", "task", "calls", "what", "trials",
                                  "failed", "default", "best", "gain", "in model", "stopped");
  double all_default = 0, all_best = 0, all_judged = 0, all_in_model = 0;
  for (size_t t = 0; t < tasks.size(); ++t) {
    const TaskProgress& p = report.tasks[t];
    const bool known = std::isfinite(p.default_us);
    // What no comparison in turns confirmed is shown as it looked, and said to be no more than that.
    const double gain = !p.is_confirmed && known && p.best_us > 0 ? p.default_us / p.best_us
                        : p.is_winner_default                     ? 1
                                                                  : p.winner_ratio;
    std::string state = p.failure.empty() ? to_string(p.why_stopped) : p.failure;
    if (!p.is_confirmed && p.failure.empty()) state += ", unconfirmed";
    const std::string in_model = p.in_model_ratio > 0 ? format_text("%8.3f", p.in_model_ratio) : "       -";
    table += format_text("%4zu %5.0f %-44.44s %7lld %7lld %10s %10s %6.3f %s  %s\n", t, tasks[t].weight,
                         tasks[t].label.c_str(), static_cast<long long>(p.trials), static_cast<long long>(p.failures),
                         time_text(p.default_us).c_str(), time_text(known ? p.default_us / gain : p.best_us).c_str(),
                         gain, in_model.c_str(), state.c_str());
    if (!known) continue;
    // What was dropped in the model counts as it is served: by its default.
    const double served = p.in_model_ratio == 1 ? 1 : gain;
    all_default += tasks[t].weight * p.default_us;
    all_best += tasks[t].weight * p.default_us / served;
    if (!(p.in_model_ratio > 0)) continue;
    all_judged += tasks[t].weight * p.in_model_us * p.in_model_ratio;
    all_in_model += tasks[t].weight * p.in_model_us;
  }
  if (all_best > 0)
    table += format_text("sum of kernels: default %s, tuned %s, gain %.3f; %lld trials (%lld measured now) in %s: %s\n",
                         time_text(all_default).c_str(), time_text(all_best).c_str(), all_default / all_best,
                         static_cast<long long>(report.trials), static_cast<long long>(report.measured),
                         duration_text(report.elapsed_s).c_str(), to_string(report.why_stopped));
  if (all_in_model > 0)
    table +=
        format_text("those that were better alone, where they stand in the model: default %s, tuned %s, gain %.3f\n",
                    time_text(all_judged).c_str(), time_text(all_in_model).c_str(), all_judged / all_in_model);
  return table;
}

}  // namespace tensmith::cli
