#include "apps/driver/tuning_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "apps/driver/cost.h"
#include "runtime/base/format.h"
#include "tensor/parse.h"
#include "tensor/walk.h"

namespace tensmith {

namespace {

std::string escaped(const std::string& raw) {
  std::string out;
  for (const char c : raw) {
    if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '&') out += "&amp;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

double points_of(const std::vector<Axis>& axes) {
  double points = 1;
  for (const Axis& axis : axes) {
    int64_t extent = 0;
    if (as_const_int(axis.extent, &extent)) points *= static_cast<double>(extent);
  }
  return points;
}

double operations_in(const Expr& body) {
  double count = 0;
  visit(body, [&](const Expr& e) {
    if (e.dtype().is_float() && (e.as<Binary>() || e.as<Call>())) ++count;
    return true;
  });
  return count;
}

/// A drawing of lines and dots over two axes.
class Plot {
 public:
  Plot(double width, double height) : width_(width), height_(height) {}

  void range_x(double low, double high, bool log) { x_ = {low, high, log}; }
  void range_y(double low, double high, bool log) { y_ = {low, high, log}; }
  void dot(double x, double y, const char* kind, const std::string& title = {}) {
    body_ += format_text("<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\">", kind, at_x(x), at_y(y),
                         title.empty() ? "2" : "4");
    if (!title.empty()) body_ += "<title>" + escaped(title) + "</title>";
    body_ += "</circle>";
  }
  void line(const std::vector<std::pair<double, double>>& points, const char* kind) {
    body_ += format_text("<polyline class=\"%s\" points=\"", kind);
    for (const auto& [x, y] : points) body_ += format_text("%.1f,%.1f ", at_x(x), at_y(y));
    body_ += "\"/>";
  }
  /// With a scale on the left and below.
  std::string svg(const std::string& x_name, const std::string& y_name) const {
    std::string out =
        format_text("<svg viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\">", width_, height_, width_, height_);
    for (const double tick : ticks(x_))
      out += format_text(
          "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
          "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.4g</text>",
          at_x(tick), at_x(tick), kTop, height_ - kBottom, at_x(tick), height_ - kBottom + 14, tick);
    for (const double tick : ticks(y_))
      out += format_text(
          "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
          "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>",
          kLeft, width_ - kRight, at_y(tick), at_y(tick), kLeft - 5, at_y(tick) + 4, tick);
    out += format_text("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>", width_ / 2, height_ - 4,
                       x_name.c_str());
    out += format_text("<text x=\"4\" y=\"12\">%s</text>", y_name.c_str());
    return out + body_ + "</svg>";
  }

 private:
  static constexpr double kLeft = 56, kRight = 12, kTop = 20, kBottom = 34;
  struct Scale {
    double low = 0, high = 1;
    bool log = false;
    double part(double v) const {
      if (log) return (std::log(v) - std::log(low)) / (std::log(high) - std::log(low));
      return (v - low) / (high - low);
    }
  };
  static std::vector<double> ticks(const Scale& s) {
    std::vector<double> list;
    if (s.log) {
      for (double decade = std::pow(10, std::floor(std::log10(s.low))); decade <= s.high; decade *= 10)
        for (const double digit : {1.0, 2.0, 5.0})
          if (decade * digit >= s.low && decade * digit <= s.high) list.push_back(decade * digit);
      return list;
    }
    const double rough = (s.high - s.low) / 5, power = std::pow(10, std::floor(std::log10(rough)));
    const double step = rough / power < 1.5 ? power : rough / power < 3.5 ? 2 * power : 5 * power;
    for (double v = std::ceil(s.low / step) * step; v <= s.high * 1.0001; v += step) list.push_back(v);
    return list;
  }
  double at_x(double v) const { return kLeft + std::clamp(x_.part(v), 0.0, 1.0) * (width_ - kLeft - kRight); }
  double at_y(double v) const {
    return height_ - kBottom - std::clamp(y_.part(v), 0.0, 1.0) * (height_ - kTop - kBottom);
  }

  double width_, height_;
  Scale x_, y_;
  std::string body_;
};

/// Its time in units of the default's in the same run; 0: unknown.
double relative_time(const TuningRecord& trial) {
  return trial.ok() && trial.default_us > 0 ? trial.time_us() / trial.default_us : 0;
}

std::string curve(const TaskHistory& task) {
  // Clocks differ between the runs of a file: what compares is each trial to the default of its own run.
  double least = 1e300, most = 0;
  for (const TuningRecord* trial : task.trials)
    if (const double time = relative_time(*trial); time > 0) {
      least = std::min(least, time);
      most = std::max(most, time);
    }
  if (most == 0) return "<p>no valid trial with the default beside it</p>";
  // What is ten times slower than the best says only that it is slow.
  most = std::max({least * 1.1, 1.05, std::min(most, least * 10)});
  Plot plot(560, 220);
  plot.range_x(0, std::max<double>(1, static_cast<double>(task.trials.size())), false);
  plot.range_y(least * 0.95, most * 1.05, true);
  std::vector<std::pair<double, double>> best;
  double so_far = 1e300;
  for (size_t k = 0; k < task.trials.size(); ++k) {
    const auto x = static_cast<double>(k + 1);
    const double time = relative_time(*task.trials[k]);
    if (time == 0) {
      if (!task.trials[k]->ok()) plot.dot(x, most * 1.05, "failed");
      continue;
    }
    plot.dot(x, time, "trial");
    if (time < so_far) {
      if (!best.empty()) best.emplace_back(x, so_far);
      so_far = time;
      best.emplace_back(x, so_far);
    }
  }
  best.emplace_back(static_cast<double>(task.trials.size()), so_far);
  plot.line(best, "best");
  plot.line({{0, 1}, {static_cast<double>(task.trials.size()), 1}}, "default");
  return plot.svg("trial", "time of a call / the default's");
}

/// Tasks of as many threads against what the machine could do with those.
std::string roofline(const std::vector<TaskHistory>& tasks, int threads) {
  struct Point {
    double intensity, gflops;
    const TaskHistory* task;
  };
  std::vector<Point> points;
  RecordPeak peak;
  for (const TaskHistory& task : tasks) {
    if (task.key.threads != threads || task.best_us() <= 0 || task.flops <= 0 || task.bytes <= 0) continue;
    points.push_back({task.flops / task.bytes, task.flops / task.best_us() * 1e-3, &task});
    peak.gflops = std::max(peak.gflops, task.peak.gflops);
    peak.cache_gbs = std::max(peak.cache_gbs, task.peak.cache_gbs);
    peak.memory_gbs = std::max(peak.memory_gbs, task.peak.memory_gbs);
  }
  if (points.empty()) return {};
  double low_x = 1e300, high_x = 0, low_y = 1e300, high_y = peak.gflops;
  for (const Point& p : points) {
    low_x = std::min(low_x, p.intensity);
    high_x = std::max(high_x, p.intensity);
    low_y = std::min(low_y, p.gflops);
    high_y = std::max(high_y, p.gflops);
  }
  low_x /= 1.5;
  high_x *= 1.5;
  Plot plot(760, 320);
  plot.range_x(low_x, high_x, true);
  plot.range_y(low_y / 1.5, high_y * 1.3, true);
  for (const auto& [gbs, kind] : {std::pair{peak.cache_gbs, "default"}, std::pair{peak.memory_gbs, "memory"}}) {
    if (peak.gflops <= 0 || gbs <= 0) continue;
    const double ridge = peak.gflops / gbs;
    std::vector<std::pair<double, double>> line;
    if (low_x < ridge) line.emplace_back(low_x, std::max(low_y / 1.5, low_x * gbs));
    else line.emplace_back(low_x, peak.gflops);
    if (ridge > low_x && ridge < high_x) line.emplace_back(ridge, peak.gflops);
    line.emplace_back(high_x, std::min(peak.gflops, high_x * gbs));
    plot.line(line, kind);
  }
  for (const Point& p : points) {
    std::string title = p.task->label + format_text(": %.4g GFLOP/s, %.3g FLOP a byte, %s", p.gflops, p.intensity,
                                                    time_text(p.task->best_us()).c_str());
    if (p.task->peak.gflops > 0) title += format_text(", %.1f %% of peak", 100 * p.gflops / p.task->peak.gflops);
    plot.dot(p.intensity, p.gflops, "trial", title);
  }
  std::string text = format_text(
      "<h2>Roofline, %d thread%s</h2><p>Each dot is a task as the compiler takes it; hold the "
      "pointer over it. ",
      threads, threads == 1 ? "" : "s");
  if (peak.gflops > 0)
    text += format_text(
        "The lines are what this machine was measured to do in the same runs: %.4g GFLOP/s of float32 "
        "FMAs, %.4g GB/s read from L2 (dashed) and %.4g GB/s from behind it (dotted).</p>",
        peak.gflops, peak.cache_gbs, peak.memory_gbs);
  else text += "The records do not say what the machine can do at most.</p>";
  return text + plot.svg("operations a byte of inputs and outputs", "GFLOP/s");
}

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --faint: #8884; --a: #0a6cbd; --b: #c04f15; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #16181b; --a: #58b0ff; --b: #ffa266; --bad: #ff8a80; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; } .wide { overflow-x: auto; }
th, td { text-align: right; padding: .2rem .6rem; border-bottom: 1px solid var(--faint); white-space: nowrap; }
td.long { white-space: normal; overflow-wrap: anywhere; }
th:first-child, td:first-child, td.left { text-align: left; }
svg { max-width: 100%; height: auto; } svg text { font-size: 11px; fill: var(--ink); }
.grid { stroke: var(--faint); } .best { fill: none; stroke: var(--a); stroke-width: 2; }
.default { fill: none; stroke: var(--b); stroke-width: 1.5; stroke-dasharray: 5 4; }
.memory { fill: none; stroke: var(--b); stroke-width: 1.5; stroke-dasharray: 1.5 4; }
.trial { fill: var(--a); fill-opacity: .55; } .failed { fill: var(--bad); }
details { margin: .4rem 0; } summary { cursor: pointer; } pre { overflow-x: auto; font-size: 12px; }
)";

}  // namespace

double flops_of_workload(const Workload& workload) {
  double flops = 0;
  for (const Stage& stage : workload.stages) {
    double each = 0;
    for (const Expr& body : stage->bodies) each += operations_in(body);
    double points = points_of(stage->axes);
    if (stage->reducer) {
      points *= points_of(stage->reduce_axes);
      // What combines a value with those before it.
      for (const Expr& combine : stage->reducer->combined) each += operations_in(combine);
    }
    flops += points * each;
  }
  return flops;
}

std::vector<TaskHistory> task_histories(const std::vector<TuningRecord>& records) {
  std::vector<TaskHistory> tasks;
  std::map<std::pair<RecordKey, std::string>, size_t> known;
  std::vector<std::vector<const TuningRecord*>> in_order;
  for (const TuningRecord& record : records) {
    if (record.is_choice()) continue;
    const auto [at, fresh] = known.try_emplace({record.key, origin_key(record.origin)}, tasks.size());
    if (fresh) {
      TaskHistory task;
      task.key = record.key;
      task.origin = record.origin;
      task.label = record.label.empty() ? record.key.workload.substr(0, record.key.workload.find('\n')) : record.label;
      if (const Result<Workload> workload = parse_workload(record.key.workload)) {
        task.flops = flops_of_workload(*workload);
        task.bytes = traffic_of(*workload);
      }
      tasks.push_back(std::move(task));
      in_order.emplace_back();
    }
    in_order[at->second].push_back(&record);
    if (record.trial >= 0 && record.standing == RecordStanding::kTrial) tasks[at->second].trials.push_back(&record);
  }
  for (size_t t = 0; t < tasks.size(); ++t) {
    TaskHistory& task = tasks[t];
    task.taken = record_to_take(in_order[t]);
    std::stable_sort(task.trials.begin(), task.trials.end(),
                     [](const TuningRecord* a, const TuningRecord* b) { return a->trial < b->trial; });
    if (task.taken) task.default_us = task.taken->default_us;
    for (const TuningRecord* record : in_order[t]) {
      if (task.default_us <= 0) task.default_us = record->default_us;
      const RecordPeak& peak = task.taken ? task.taken->peak : record->peak;
      if (task.peak.gflops <= 0) task.peak = peak;
    }
  }
  std::stable_sort(tasks.begin(), tasks.end(), [](const TaskHistory& a, const TaskHistory& b) {
    return std::max(a.default_us, a.best_us()) > std::max(b.default_us, b.best_us());
  });
  return tasks;
}

std::string tuning_report_html(const std::string& title, const std::vector<TuningRecord>& records,
                               const std::vector<BadLine>& bad) {
  const std::vector<TaskHistory> tasks = task_histories(records);
  std::string page =
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\"><title>" +
      escaped(title) + "</title><style>" + kStyle + "</style><h1>" + escaped(title) + "</h1>";
  std::map<std::string, int64_t> failures;
  std::set<std::string> cpus, targets, tools, dates;
  int64_t valid = 0;
  for (const TuningRecord& record : records) {
    cpus.insert(record.origin.cpu);
    targets.insert(record.origin.target);
    tools.insert(record.origin.tool + " build " + record.origin.build);
    if (!record.date.empty()) dates.insert(record.date);
    if (record.ok()) ++valid;
    else ++failures[record.error.empty() ? "no times" : record.error];
  }
  const auto joined = [](const std::set<std::string>& items) {
    std::string all;
    for (const std::string& item : items) all += (all.empty() ? "" : "; ") + item;
    return escaped(all);
  };
  page += format_text("<p>%zu records of %zu tasks, %lld valid", records.size(), tasks.size(),
                      static_cast<long long>(valid));
  for (const auto& [kind, count] : failures)
    page += format_text(", %lld %s", static_cast<long long>(count), escaped(kind).c_str());
  page += format_text("; %zu lines that are no records.</p>", bad.size());
  page += "<h2>Environment</h2><table><tr><td>CPU</td><td class=left>" + joined(cpus) +
          "</td></tr><tr><td>target</td><td class=\"left long\">" + joined(targets) +
          "</td></tr><tr><td>tensmith</td><td class=left>" + joined(tools) + "</td></tr>";
  if (!dates.empty())
    page += "<tr><td>measured</td><td class=left>" + escaped(*dates.begin()) + " to " + escaped(*dates.rbegin()) +
            "</td></tr>";
  page +=
      "</table><h2>Tasks</h2><div class=wide><table><tr><th>task<th>threads<th>trials<th>failed<th>default<th>taken"
      "<th>gain<th>spread<th>GFLOP/s<th>of peak<th>GB/s<th>state</tr>";
  for (size_t t = 0; t < tasks.size(); ++t) {
    const TaskHistory& task = tasks[t];
    const auto failed =
        std::count_if(task.trials.begin(), task.trials.end(), [](const TuningRecord* r) { return !r->ok(); });
    const double best = task.best_us();
    const double gflops = best > 0 ? task.flops / best * 1e-3 : 0;
    const auto or_dash = [](bool known, const char* format, double value) {
      return known ? format_text(format, value) : std::string("-");
    };
    page += format_text("<tr><td><a href=\"#t%zu\">%s</a><td>%d<td>%zu<td>%lld<td>%s<td>%s", t,
                        escaped(task.label.substr(0, 200)).c_str(), task.key.threads, task.trials.size(),
                        static_cast<long long>(failed), time_text(task.default_us).c_str(), time_text(best).c_str());
    page += "<td>" + or_dash(task.gain() > 0, "%.3f", task.gain()) + "<td>" +
            or_dash(task.taken != nullptr, "%.1f %%", task.taken ? task.taken->spread() * 50 : 0) + "<td>" +
            or_dash(gflops > 0, "%.4g", gflops) + "<td>" +
            or_dash(gflops > 0 && task.peak.gflops > 0, "%.0f %%",
                    task.peak.gflops > 0 ? 100 * gflops / task.peak.gflops : 0) +
            "<td>" + or_dash(best > 0, "%.4g", best > 0 ? task.bytes / best * 1e-3 : 0) + "<td class=left>" +
            (task.is_confirmed() ? "confirmed"
             : task.taken        ? "unconfirmed"
                                 : "default") +
            "</tr>";
  }
  page +=
      "</table></div><p>Gains are the default's time to the taken schedule's, both of one comparison in turns. "
      "Unconfirmed: the run ended before that comparison, and the trial beats the default by more than its own "
      "spread.</p>";
  std::set<int> threads;
  for (const TaskHistory& task : tasks) threads.insert(task.key.threads);
  for (const int n : threads) page += roofline(tasks, n);
  page +=
      "<h2>Curves</h2><p>Dots are trials, red ones failed; the line is the best so far, the dashed one the "
      "default.</p>";
  for (size_t t = 0; t < tasks.size(); ++t) {
    const TaskHistory& task = tasks[t];
    page += format_text("<h3 id=\"t%zu\">", t) + escaped(task.label) + "</h3>" + curve(task);
    if (!task.taken) continue;
    page += "<details><summary>the schedule that is taken</summary><pre>" + escaped(to_string(task.taken->decisions));
    for (const Step& step : task.taken->steps) page += "\n" + escaped(to_string(step));
    page +=
        "</pre></details><details><summary>workload</summary><pre>" + escaped(task.key.workload) + "</pre></details>";
  }
  if (!bad.empty()) {
    page += "<h2>Lines that are no records</h2><pre>";
    for (const BadLine& line : bad) page += escaped(to_string(line)) + "\n";
    page += "</pre>";
  }
  return page + "</html>\n";
}

}  // namespace tensmith
