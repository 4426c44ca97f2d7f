// Records of tuning: whole lines whatever happens to the writers, bad lines named and skipped, the right record found.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "autotune/records/apply_record.h"
#include "autotune/records/build_id.h"
#include "autotune/records/record_index.h"
#include "runtime/base/files.h"
#include "runtime/base/rng.h"
#include "tensor/parse.h"
#include "tests/support/workloads.h"

namespace tensmith {
namespace {

ScheduleRequest request_here(int threads = 1) {
  ScheduleRequest request;
  request.target = Target::host();
  request.threads = threads;
  return request;
}

TuningRecord record_of(const Workload& workload, const ScheduleRequest& request, double time) {
  TuningRecord record;
  record.key = record_key(workload, request);
  record.origin = origin_here(request.target);
  record.steps = default_schedule(workload, request).steps();
  record.decisions.set("C.tile.rows", int64_t{7});
  record.decisions.set("R.rule", std::string("tile-epilogue"));
  record.times_us = {time * 1.1, time, time * 0.9};
  record.default_us = 10;
  record.cold_bytes = 1 << 20;
  record.peak = {200, 150, 12.5};
  record.seed = 0xfedcba9876543210u;
  record.trial = 17;
  record.label = "conv \"a\" \xc3\xa4";
  record.date = record_date();
  return record;
}

TuningRecord small_record(int64_t trial) {
  TuningRecord record;
  record.key.workload = "w";
  record.times_us = {1.5};
  record.trial = trial;
  record.error_text = std::string(static_cast<size_t>(trial % 97) * 40, 'x');
  return record;
}

TEST(Record, RoundTrip) {
  const TuningRecord record = record_of(dense_workload(8, 32, 16), request_here(2), 3.25);
  const std::string line = record_line(record);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const Result<TuningRecord> read = parse_record_line(std::string_view(line).substr(0, line.size() - 1));
  ASSERT_TRUE(read.ok()) << read.failure().message;
  EXPECT_EQ(read.value(), record);
  EXPECT_EQ(record_line(read.value()), line);
  EXPECT_DOUBLE_EQ(read->time_us(), 3.25);
  EXPECT_NEAR(read->spread(), 0.1, 1e-12);
  EXPECT_EQ(TuningRecord().time_us(), 0);
}

TEST(Record, AWayOfTheGraphRoundTripsAndCompetes) {
  TuningRecord tile = small_record(1), direct = small_record(1);
  for (TuningRecord* record : {&tile, &direct}) {
    record->steps.clear();
    record->decisions = {};
    record->key.workload = "choice in model 1234: algorithm of something";
    record->standing = RecordStanding::kWinner;
  }
  tile.way = "winograd-2";
  tile.times_us = {2};
  tile.default_us = 3;
  direct.way = "direct";
  direct.times_us = {3};
  direct.default_us = 3;
  const std::string line = record_line(tile);
  EXPECT_EQ(parse_record_line(std::string_view(line).substr(0, line.size() - 1)).value(), tile);
  EXPECT_EQ(record_to_take({&direct, &tile}), &tile);
  // Found to be no better later.
  TuningRecord again = tile;
  again.standing = RecordStanding::kCompared;
  EXPECT_EQ(record_to_take({&direct, &tile, &again}), &direct);
}

TEST(Record, EveryFlippedByteIsSeen) {
  const std::string line = record_line(record_of(dense_workload(4, 16, 4), request_here(), 2));
  Rng rng(3);
  for (size_t at = 0; at + 1 < line.size(); ++at) {
    std::string flipped = line.substr(0, line.size() - 1);
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << rng.below(7)));
    const Result<TuningRecord> read = parse_record_line(flipped);
    EXPECT_FALSE(read.ok()) << at;
  }
}

TEST(Record, EveryCutIsSeen) {
  const std::string line = record_line(record_of(dense_workload(4, 16, 4), request_here(), 2));
  for (size_t length = 1; length + 1 < line.size(); ++length) {
    const Result<TuningRecord> read = parse_record_line(std::string_view(line).substr(0, length));
    ASSERT_FALSE(read.ok()) << length;
    // Braces of a step may look like the end.
    EXPECT_TRUE(read.failure().id == "record-torn" || line[length - 1] == '}') << read.failure().id << length;
  }
}

TEST(RecordFile, BadLinesAreNamedAndSkipped) {
  const TempDir folder;
  const std::string path = folder.file("R.jsonl");
  const std::string good = record_line(small_record(1));
  std::string flipped = record_line(small_record(2)), old = record_line(small_record(3));
  flipped[flipped.size() / 2] ^= 1;
  std::ofstream(path, std::ios::binary) << good << "\n"
                                        << "{\"i\": [\"another tool\"]}\n"
                                        << flipped << good << old.substr(0, old.size() / 2) << "\n"
                                        << std::string(size_t{17} << 20, 'y') << "\n"
                                        << good << std::string("\x00\xff\xfe\n", 4) << good.substr(0, 60);
  const Result<RecordLines> lines = read_records(path);
  ASSERT_TRUE(lines.ok());
  EXPECT_EQ(lines->records.size(), 3u);
  EXPECT_EQ(lines->lines, (std::vector<int64_t>{1, 5, 8}));
  std::vector<std::string> ids;
  for (const BadLine& bad : lines->bad) ids.push_back(std::to_string(bad.line) + " " + bad.id);
  EXPECT_EQ(ids, (std::vector<std::string>{"3 record-foreign", "4 record-flipped", "6 record-torn", "7 record-long",
                                           "9 record-foreign", "10 record-torn"}));
  EXPECT_NE(to_string(lines->bad[0]).find("R.jsonl:3: "), std::string::npos);
  EXPECT_EQ(read_records(folder.file("none")).failure().id, "cannot-read");
  EXPECT_EQ(read_records(folder.path()).failure().id, "cannot-read");
}

TEST(Record, AnotherVersionOfTheFormIsOld) {
  // The body of a record says its version first; the check is made anew as a later tool would.
  EXPECT_EQ(parse_record_line("{\"check\":\"" + record_check("{\"schema\":99}") + "\",\"record\":{\"schema\":99}}")
                .failure()
                .id,
            "record-old");
  EXPECT_EQ(parse_record_line("{\"check\":\"" + record_check("{\"schema\":1}") + "\",\"record\":{\"schema\":1}}")
                .failure()
                .id,
            "record-old");
  for (const char* body : {"{}", "[]", "3", "{\"schema\":2}", "{\"schema\":\"2\"}"})
    EXPECT_EQ(parse_record_line("{\"check\":\"" + record_check(body) + "\",\"record\":" + body + "}").failure().id,
              "record-foreign")
        << body;
}

/// Runs `work` in a child process.
template <typename F>
pid_t in_child(F&& work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  return child;
}

TEST(RecordFile, EightWriters) {
  const TempDir folder;
  const std::string path = folder.file("R.jsonl");
  constexpr int kWriters = 8, kEach = 200;
  std::vector<pid_t> children;
  for (int w = 0; w < kWriters; ++w)
    children.push_back(in_child([&] {
      Result<RecordWriter> writer = RecordWriter::open(path);
      if (!writer) _exit(1);
      RecordWriter open = std::move(writer).value();
      for (int k = 0; k < kEach; ++k)
        if (!open.append(small_record(w * kEach + k))) _exit(1);
    }));
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const Result<RecordLines> lines = read_records(path);
  ASSERT_TRUE(lines.ok());
  EXPECT_TRUE(lines->bad.empty());
  std::vector<int> seen(kWriters * kEach);
  for (const TuningRecord& record : lines->records) ++seen[static_cast<size_t>(record.trial)];
  for (const int count : seen) EXPECT_EQ(count, 1);
}

// A writer that is killed at any time loses no record that it had acknowledged, and spoils none of another writer.
TEST(RecordFile, KilledWritersLoseNothing) {
  const TempDir folder;
  const std::string path = folder.file("R.jsonl");
  Rng rng(5);
  int64_t acknowledged = 0, kills = 0;
  std::vector<int64_t> all;
  for (int round = 0; round < 60; ++round) {
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    const pid_t child = in_child([&] {
      Result<RecordWriter> writer = RecordWriter::open(path);
      if (!writer) _exit(1);
      RecordWriter open = std::move(writer).value();
      for (int64_t k = 0;; ++k) {
        const int64_t trial = round * 100000 + k;
        if (!open.append(small_record(trial))) _exit(1);
        if (write(pipe_ends[1], &trial, sizeof trial) != sizeof trial) _exit(1);
      }
    });
    close(pipe_ends[1]);
    // Whoever comes behind a torn line writes at least once, however busy the machine is.
    if (int64_t trial = 0; round % 10 == 0 && read(pipe_ends[0], &trial, sizeof trial) == sizeof trial) {
      all.push_back(trial);
      ++acknowledged;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200 + rng.below(4000)));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    kills += WIFSIGNALED(status);
    int64_t trial = 0;
    while (read(pipe_ends[0], &trial, sizeof trial) == sizeof trial) {
      all.push_back(trial);
      ++acknowledged;
    }
    close(pipe_ends[0]);
    // What a killed writer may leave at worst: a line without its end.
    if (round % 10 == 9)
      std::ofstream(path, std::ios::app | std::ios::binary) << record_line(small_record(7)).substr(0, 40);
  }
  EXPECT_EQ(kills, 60);
  EXPECT_GT(acknowledged, 100);
  const Result<RecordLines> lines = read_records(path);
  ASSERT_TRUE(lines.ok());
  std::vector<int64_t> found;
  for (const TuningRecord& record : lines->records) found.push_back(record.trial);
  for (const int64_t trial : all) EXPECT_EQ(std::count(found.begin(), found.end(), trial), 1) << trial;
  EXPECT_GE(lines->bad.size(), 6u);
  for (const BadLine& bad : lines->bad) EXPECT_EQ(bad.id, "record-torn");
}

TEST(RecordFile, FullDiskIsReportedAndNothingIsLost) {
  const TempDir folder;
  const std::string path = folder.file("R.jsonl");
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = in_child([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{20000, 20000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(1);
    RecordWriter writer = RecordWriter::open(path).value();
    for (int64_t trial = 0; trial < 1000; ++trial) {
      const Result<void> saved = writer.append(small_record(trial));
      if (saved) {
        if (write(pipe_ends[1], &trial, sizeof trial) != sizeof trial) _exit(1);
      } else if (saved.failure().id != "cannot-write") {
        _exit(2);
      }
    }
  });
  close(pipe_ends[1]);
  int64_t trial = 0;
  std::vector<int64_t> acknowledged, found;
  while (read(pipe_ends[0], &trial, sizeof trial) == sizeof trial) acknowledged.push_back(trial);
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_GT(acknowledged.size(), 3u);
  EXPECT_LT(acknowledged.size(), 1000u);
  const Result<RecordLines> lines = read_records(path);
  ASSERT_TRUE(lines.ok());
  for (const TuningRecord& record : lines->records) found.push_back(record.trial);
  EXPECT_EQ(found, acknowledged);
  EXPECT_TRUE(lines->bad.empty());
  EXPECT_EQ(RecordWriter::open("/dev/full/none").failure().id, "cannot-write");
  if (Result<RecordWriter> full = RecordWriter::open("/dev/full")) {
    RecordWriter writer = std::move(full).value();
    EXPECT_EQ(writer.append(small_record(1)).failure().id, "cannot-write");
  }
}

TEST(RecordIndex, FindsTheBestOrSaysWhyNot) {
  const Workload workload = dense_workload(8, 32, 16), other_workload = dense_workload(9, 32, 16);
  const ScheduleRequest request = request_here();
  RecordIndex index;
  EXPECT_EQ(index.best(workload, request).reason, "no record of this workload");
  TuningRecord foreign = record_of(workload, request, 1);
  foreign.origin.cpu = "Abacus 3000";
  index.add(foreign, "R:1");
  EXPECT_EQ(index.best(workload, request).reason,
            "refused: R:1: measured on another CPU: Abacus 3000, this is " + host_cpu_model());
  TuningRecord old = record_of(workload, request, 1);
  old.origin.tool = "0.0.1";
  index.add(old, "R:2");
  EXPECT_NE(index.best(workload, request).reason.find("R:2: made by version 0.0.1"), std::string::npos);
  TuningRecord narrow = record_of(workload, request, 1);
  narrow.origin.target = "x86-64-v2";
  index.add(narrow, "R:3");
  EXPECT_NE(index.best(workload, request).reason.find("made for another target: x86-64-v2"), std::string::npos);
  TuningRecord rebuilt = record_of(workload, request, 1);
  rebuilt.origin.build = "0123456789ab";
  rebuilt.standing = RecordStanding::kWinner;
  index.add(rebuilt, "R:3b");
  const RecordKey key = record_key(workload, request);
  EXPECT_NE(
      index.best(workload, request)
          .reason.find("R:3b: made by another build of the tool: 0123456789ab, this is " + std::string(build_id())),
      std::string::npos);
  // Whoever asks for them gets them; those of other machines and versions he does not.
  const RecordFound other = index.best(key, origin_here(request.target), OtherBuilds::kTake);
  ASSERT_NE(other.record, nullptr);
  EXPECT_EQ(other.reason,
            "winner of 1 record, 1 us, gain 10.000, R:3b, made by another build of the tool, so its gain is not sure");
  index.add(record_of(workload, request_here(2), 1), "R:4");
  EXPECT_EQ(index.best(workload, request).record, nullptr);
  EXPECT_EQ(index.best(other_workload, request).reason, "no record of this workload");
  RecordKey fast = key;
  fast.arithmetic.fast_math = true;
  {
    RecordIndex exact;
    exact.add(record_of(workload, request, 3), "R:1");
    EXPECT_EQ(exact.best(fast, origin_here(request.target)).reason,
              "only for other arithmetic: fast-math or contraction differ");
  }
  TuningRecord failed = record_of(workload, request, 1);
  failed.times_us.clear();
  failed.error = "wrong-result";
  index.add(failed, "R:5");
  EXPECT_EQ(index.best(workload, request).reason, "only failed attempts: wrong-result");
  // One schedule counts once; it looks three times as fast as the default but was not confirmed.
  TuningRecord trial = record_of(workload, request, 5);
  trial.steps.push_back(parse_step("annotate stage=R loop=i1 key=note.x value=1").value());
  index.add(trial, "R:6");
  trial.steps.back() = parse_step("annotate stage=R loop=i0 key=note.x value=1").value();
  trial.times_us = {3};
  index.add(trial, "R:7");
  index.add(trial, "R:8");
  // Another number of cores in the target changes nothing.
  const RecordFound found = index.best(workload, request);
  ASSERT_NE(found.record, nullptr);
  EXPECT_EQ(found.reason, "unconfirmed best of 3 records, 3 us, gain 3.333, R:7");
  // What is of this build stands before all others.
  EXPECT_EQ(index.best(key, origin_here(request.target), OtherBuilds::kTake).reason, found.reason);
  EXPECT_EQ(index.best(workload, request_here(3)).reason, "only for other numbers of threads: 1, 2");
  ScheduleRequest turned = request;
  turned.output_layouts = {Layout::permuted({1, 0})};
  EXPECT_NE(index.best(workload, turned).reason.find("only for other layouts"), std::string::npos);
}

/// Schedules that differ, with times beside a default.
class Taking : public testing::Test {
 protected:
  const Workload workload_ = dense_workload(8, 32, 16);
  const ScheduleRequest request_ = request_here();
  std::vector<TuningRecord> records_;

  void add(const char* schedule, double time, double default_us, RecordStanding standing = RecordStanding::kTrial) {
    TuningRecord record = record_of(workload_, request_, 1);
    record.steps.push_back(
        parse_step(std::string("annotate stage=R loop=i0 key=note.") + schedule + " value=1").value());
    record.times_us = {time};
    record.default_us = default_us;
    record.standing = standing;
    record.label = schedule;
    records_.push_back(record);
  }
  std::string taken() const {
    std::vector<const TuningRecord*> all;
    for (const TuningRecord& record : records_) all.push_back(&record);
    const TuningRecord* record = record_to_take(all);
    return record ? record->label : "default";
  }
};

TEST_F(Taking, TrialsOnlyBeyondTheirOwnSpreadAndNeverBelowTheDefault) {
  EXPECT_EQ(taken(), "default");
  add("same", 10, 10);
  add("slow", 12, 10);
  EXPECT_EQ(taken(), "default");
  // A tenth faster in the median, but its windows lie further apart than that.
  add("noisy", 9, 10);
  records_.back().times_us = {7.5, 8.2, 9, 9.8, 10.5};
  EXPECT_EQ(taken(), "default");
  add("unknown", 1, 0);
  EXPECT_EQ(taken(), "default");
  add("fast", 9, 10);
  EXPECT_EQ(taken(), "fast");
  // A lower time on the scale of a faster clock is no better one.
  add("otherday", 5, 5.1);
  EXPECT_EQ(taken(), "fast");
}

TEST_F(Taking, WinnersStandBeforeFasterLookingTrialsBeforeThem) {
  add("fast", 5, 10);
  add("lucky", 4, 10);
  EXPECT_EQ(taken(), "lucky");
  add("fast", 6, 10, RecordStanding::kWinner);
  EXPECT_EQ(taken(), "fast");
  // An interrupted run found something that looks better by more than its spread, and something that does not.
  add("later", 6.5, 10);
  EXPECT_EQ(taken(), "fast");
  add("better", 5.5, 10);
  EXPECT_EQ(taken(), "better");
  // Compared, it was not.
  add("better", 6.2, 10, RecordStanding::kCompared);
  EXPECT_EQ(taken(), "fast");
  add("better", 5.5, 10);
  EXPECT_EQ(taken(), "fast");
  // Looked at again, the winner is none: the default is, as its own record says.
  add("fast", 10.1, 10, RecordStanding::kCompared);
  EXPECT_EQ(taken(), "default");
  add("usual", 10, 10, RecordStanding::kWinner);
  EXPECT_EQ(taken(), "usual");
}

TEST_F(Taking, OfSeveralWinnersTheLargestGainWhateverTheOrderOfFiles) {
  add("usual", 10, 10, RecordStanding::kWinner);
  add("good", 5, 10, RecordStanding::kWinner);
  // Its time is shorter, on another day's clock; its gain is smaller.
  add("fair", 4, 6, RecordStanding::kWinner);
  EXPECT_EQ(taken(), "good");
  std::reverse(records_.begin(), records_.end());
  EXPECT_EQ(taken(), "good");
}

TEST_F(Taking, WhatWasFoundWrongLaterIsNotTaken) {
  add("fast", 5, 10, RecordStanding::kWinner);
  add("second", 6, 10, RecordStanding::kWinner);
  EXPECT_EQ(taken(), "fast");
  add("fast", 5, 10);
  records_.back().times_us.clear();
  records_.back().error = "run-timeout";
  EXPECT_EQ(taken(), "fast") << "a time-out may be the machine's";
  records_.back().error = "wrong-result";
  EXPECT_EQ(taken(), "second");
  EXPECT_EQ(parse_record_line(record_line(records_[0]).substr(0, record_line(records_[0]).size() - 1)).value(),
            records_[0]);
}

TEST(ApplyRecord, RefusesWhatIsNotLegalHere) {
  const Workload workload = dense_workload(8, 32, 16);
  ScheduleRequest request = request_here();
  TuningRecord record = record_of(workload, request, 2);
  const Result<Schedule> schedule = apply_record(workload, request, record);
  ASSERT_TRUE(schedule.ok()) << schedule.failure().message;
  EXPECT_EQ(schedule->steps(), record.steps);
  EXPECT_EQ(apply_record(dense_workload(9, 32, 16), request, record).failure().id, "trace-workload");
  // Layouts that the surroundings do not expect would give other results.
  request.output_layouts = {Layout::permuted({1, 0})};
  EXPECT_EQ(apply_record(workload, request, record).failure().id, "record-layout");
  request.output_layouts = {};
  record.steps.push_back(parse_step("transform_layout stage=A layout=1,0").value());
  EXPECT_EQ(apply_record(workload, request, record).failure().id, "record-layout");
  record.steps.back() = parse_step("split stage=R loop=nowhere factor=4 outer=a inner=b").value();
  EXPECT_FALSE(apply_record(workload, request, record).ok());
}

// Stages may be called like a word of the text form; their steps must fit the workload that is read back.
TEST(ApplyRecord, StagesCalledLikeWordsOfTheText) {
  const Tensor x = placeholder("X", {6, 20}, kFloat32);
  const auto stage = [&](const Tensor& from) {
    return compute("concat", {6, 20},
                   [&](const Indices& i) { return select(i[1] < 3, call(Intrinsic::kExp, {from(i)}), from(i)); });
  };
  const Tensor a = stage(x), b = stage(a);
  const Workload workload = make_workload("words", {x}, {b});
  TuningRecord record = record_of(workload, request_here(), 1);
  const Result<Workload> read = parse_workload(record.key.workload);
  ASSERT_TRUE(read.ok());
  const Result<Schedule> schedule = apply_record(read.value(), request_here(), record);
  ASSERT_TRUE(schedule.ok()) << schedule.failure().message;
}

TEST(Records, BestOfEachTask) {
  const Workload workload = dense_workload(8, 32, 16);
  std::vector<TuningRecord> all{record_of(workload, request_here(), 4), record_of(workload, request_here(2), 4),
                                record_of(workload, request_here(), 3)};
  all[2].steps.push_back(parse_step("annotate stage=R loop=i1 key=note.y value=1").value());
  all.push_back(all[0]);
  all.back().times_us.clear();
  all.back().error = "crash";
  all.back().steps.push_back(parse_step("annotate stage=R loop=i0 key=note.x value=1").value());
  const std::vector<const TuningRecord*> best = best_records(all);
  ASSERT_EQ(best.size(), 2u);
  EXPECT_EQ(best[0], &all[2]);
  EXPECT_EQ(best[1], &all[1]);
}

}  // namespace
}  // namespace tensmith
