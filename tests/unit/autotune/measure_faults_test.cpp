// What candidates, workers and connections may do to a session: each fault is made for real.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "autotune/measure/line_protocol.h"
#include "autotune/measure/worker_process.h"
#include "runtime/base/files.h"
#include "runtime/timer.h"
#include "tests/unit/autotune/measure_support.h"

namespace tensmith {
namespace {

bool is_alive(int pid) {
  if (kill(pid, 0) != 0) return false;
  const Result<std::string> stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  return stat.ok() && stat->find(") Z ") == std::string::npos;
}

std::string shown(const MeasureResult& r) { return std::string(to_string(r.failure)) + ": " + r.message; }

class MeasureFaults : public testing::Test {
 protected:
  static constexpr int64_t kM = 16, kN = 16, kK = 32;

  MeasureResult measure(MeasureCandidate candidate) { return measure_one(*session_, id_, std::move(candidate)); }
  void start(SessionOptions options = test_session_options()) {
    session_ = std::make_unique<MeasureSession>(std::move(options));
    id_ = *session_->add_task(task_);
  }
  /// The session still works.
  void expect_usable() {
    const MeasureResult good = measure(right());
    EXPECT_TRUE(good.valid()) << shown(good);
  }
  MeasureCandidate right() const { return candidate_from_text(task_, matmul_text(kM, kN, kK)); }
  MeasureCandidate wrong(const std::string& body) const {
    return candidate_from_text(task_, matmul_text(kM, kN, kK, body));
  }

  MeasureTask task_ = matmul_task(kM, kN, kK);
  std::unique_ptr<MeasureSession> session_;
  int id_ = -1;
};

#if defined(__x86_64__)
TEST_F(MeasureFaults, EverySignalIsNamedAndTheNextCandidateRuns) {
  start();
  expect_usable();
  for (const int signal : {SIGSEGV, SIGILL, SIGFPE, SIGABRT, SIGBUS}) {
    const MeasureResult result = measure(with_code(right(), code_that_raises(signal)));
    EXPECT_EQ(result.failure, MeasureFailure::kCrashed) << signal << " " << shown(result);
    EXPECT_EQ(result.signal, signal) << shown(result);
  }
  expect_usable();
  EXPECT_EQ(session_->counts().runners_started, 6);
}

TEST_F(MeasureFaults, AHangEndsAtTheLimit) {
  SessionOptions options = test_session_options();
  options.limits.run_s = 0.4;
  start(options);
  const MeasureResult result = measure(with_code(right(), code_that_hangs()));
  EXPECT_EQ(result.failure, MeasureFailure::kRunTimeout) << shown(result);
  EXPECT_LT(result.run_wall_ms, 20e3);
  expect_usable();
}

TEST_F(MeasureFaults, AKernelThatEndsItsProcessIsLostAfterASecondTry) {
  start();
  const MeasureResult killed = measure(with_code(right(), code_that_raises(SIGKILL)));
  EXPECT_EQ(killed.failure, MeasureFailure::kWorkerLost) << shown(killed);
  EXPECT_EQ(killed.attempts, 2);
  const MeasureResult left =
      measure(with_code(right(), {0xbf, 3, 0, 0, 0, 0xb8, 0xe7, 0, 0, 0, 0x0f, 0x05}));  // exit(3)
  EXPECT_EQ(left.failure, MeasureFailure::kWorkerLost) << shown(left);
  expect_usable();
}

TEST_F(MeasureFaults, WorkersKilledInMidRunAreReplacedAndTheCandidateRunsAgain) {
  start();
  expect_usable();
  int valid = 0;
  for (int k = 0; k < 12; ++k) session_->submit(id_, k % 2 ? right() : default_candidate(task_));
  for (int k = 0; k < 12; ++k) {
    for (const int pid : session_->worker_pids())
      if (k % 4 == 1) kill(pid, SIGKILL);
    const std::optional<MeasureResult> result = session_->wait(60);
    ASSERT_TRUE(result);
    valid += result->valid();
    EXPECT_TRUE(result->valid() || result->failure == MeasureFailure::kWorkerLost) << shown(*result);
  }
  EXPECT_GE(valid, 9);
  EXPECT_GT(session_->counts().runners_started, 1);
  expect_usable();
}
#endif

TEST_F(MeasureFaults, MemoryWithoutEndIsRefusedByName) {
  SessionOptions options = test_session_options();
  options.limits.run_mib = 512;
  start(options);
  const MeasureResult kernel = measure(candidate_from_text(
      task_,
      "func measured_kernel(A: f32[512], B: f32[512], C: f32[256]) -> C {\n  alloc T: f32[17179869184]\n"
      "  for i in 256 { T[i * 4096] = 1.0 }\n  for i in 256 { C[i] = T[i * 4096] }\n}\n"));
  EXPECT_EQ(kernel.failure, MeasureFailure::kOutOfMemory) << shown(kernel);
  expect_usable();
  // A workspace that the machine has not.
  MeasureCandidate candidate = right();
  candidate.built->buffer_bytes.push_back(int64_t{1} << 39);
  const MeasureResult workspace = measure(candidate);
  EXPECT_EQ(workspace.failure, MeasureFailure::kOutOfMemory) << shown(workspace);
  expect_usable();
}

TEST_F(MeasureFaults, CompilationThatBlowsUpEndsAtALimit) {
  task_ = matmul_task(64, 64, 64);
  Schedule schedule(task_.workload);
  for (const char* loop : {"r0", "i1", "i0"}) schedule.unroll("C", loop);
  MeasureCandidate candidate;
  candidate.steps = schedule.steps();
  SessionOptions options = test_session_options();
  options.limits.max_unroll = 1 << 30;
  options.limits.build_s = 0.5;
  MeasureSession by_time(options);
  const MeasureResult slow = measure_one(by_time, *by_time.add_task(task_), candidate);
  EXPECT_EQ(slow.failure, MeasureFailure::kBuildTimeout) << shown(slow);
  options.limits.build_s = 60;
  options.limits.build_mib = 24;
  MeasureSession by_memory(options);
  const MeasureResult large = measure_one(by_memory, *by_memory.add_task(task_), candidate);
  EXPECT_EQ(large.failure, MeasureFailure::kOutOfMemory) << shown(large);
  options.limits.build_mib = 2048;
  options.limits.code_bytes = 200;
  MeasureSession by_size(options);
  const int id = *by_size.add_task(task_);
  const MeasureResult fat = measure_one(by_size, id, default_candidate(task_));
  EXPECT_EQ(fat.failure, MeasureFailure::kCodeTooLarge) << shown(fat);
}

TEST_F(MeasureFaults, AccessesOutOfBoundsAreFoundOnEitherSide) {
  start();
  const std::string sum =
      "C[i * 16 + j] = 0.0\n for k in 32 { C[i * 16 + j] = C[i * 16 + j] + A[i * 32 + k] * B[k * 16 + j] }\n";
  const struct {
    const char* statement;
    MeasureFailure failure;
    const char* text;
  } cases[] = {
      {"if i == 15 && j == 15 { C[256] = 1.0 }\n", MeasureFailure::kOutOfBoundsWrite, "behind output C"},
      {"if i == 0 && j == 0 { C[0 - 1] = 1.0 }\n", MeasureFailure::kOutOfBoundsWrite, "output C"},
      {"if i == 0 && j == 0 { C[0 - 2000] = 1.0 }\n", MeasureFailure::kOutOfBoundsWrite, "output C"},
      {"if i == 3 && j == 3 { A[7] = 1.0 }\n", MeasureFailure::kOutOfBoundsWrite, "into input A"},
      {"if i == 3 && j == 3 { B[7] = 1.0 }\n", MeasureFailure::kOutOfBoundsWrite, "into constant B"},
      {"if i == 3 && j == 3 { C[0] = A[512] * 0.0 + C[0] }\n", MeasureFailure::kOutOfBoundsRead, "behind input A"},
  };
  for (const auto& c : cases) {
    const MeasureResult result = measure(wrong(sum + c.statement));
    EXPECT_EQ(result.failure, c.failure) << c.statement << shown(result);
    EXPECT_NE(result.message.find(c.text), std::string::npos) << c.statement << shown(result);
  }
  expect_usable();
}

TEST_F(MeasureFaults, KernelsThatReturnACodeAreNamed) {
  start();
  const MeasureResult result = measure(wrong("assert i < 15, 42, \"too far\"\n C[i * 16 + j] = 0.0\n"));
  EXPECT_EQ(result.failure, MeasureFailure::kKernelError) << shown(result);
  EXPECT_NE(result.message.find("42"), std::string::npos) << result.message;
}

TEST_F(MeasureFaults, NoneOfTwoHundredFastButWrongKernelsIsValid) {
  start();
  const auto text = [](int v) { return std::to_string(v); };
  // The product with one thing wrong. %1: what is summed over, %2: the product, %3: what happens to the sum.
  const auto kernel = [&](const std::string& extent, const std::string& product, const std::string& after) {
    return "C[i * 16 + j] = 0.0\n for k in " + extent + " { C[i * 16 + j] = C[i * 16 + j] + " + product + " }\n" +
           after;
  };
  const std::string product = "A[i * 32 + k] * B[k * 16 + j]", at = "C[i * 16 + j]";
  std::vector<MeasureCandidate> candidates;
  for (int k = 0; k < 25; ++k) {
    const int i = k * 7 % 16, j = k * 5 % 16;
    const std::string here = "i == " + text(i) + " && j == " + text(j);
    // A term left out; a row or column shifted; an element not written, halved, negated or off by little; a stale
    // index.
    candidates.push_back(wrong(kernel(text(31 - k % 16), product, "")));
    candidates.push_back(wrong(kernel("32", "A[i * 32 + k] * B[k * 16 + (j + " + text(k % 15 + 1) + ") % 16]", "")));
    candidates.push_back(wrong(kernel("32", "A[(i + " + text(k % 15 + 1) + ") % 16 * 32 + k] * B[k * 16 + j]", "")));
    candidates.push_back(wrong("if !(" + here + ") {\n" + kernel("32", product, "") + "}\n"));
    candidates.push_back(wrong(kernel("32", product, "if " + here + " { " + at + " = " + at + " * 0.5 }\n")));
    candidates.push_back(wrong(kernel("32", product, "if " + here + " { " + at + " = " + at + " + 0.001 }\n")));
    candidates.push_back(wrong(kernel("32", product, at + " = " + at + " * " + (k % 2 ? "1.0002\n" : "0.9998\n"))));
    candidates.push_back(wrong(at + " = A[" + text(k * 20) + "] * B[j]\n"));
  }
  ASSERT_EQ(candidates.size(), 200u);
  for (MeasureCandidate& candidate : candidates) session_->submit(id_, std::move(candidate));
  int refused = 0;
  while (const std::optional<MeasureResult> result = session_->wait(60)) {
    EXPECT_EQ(result->failure, MeasureFailure::kWrongResult) << result->id << " " << shown(*result);
    EXPECT_EQ(result->timing.median_us, 0);
    refused += result->failure == MeasureFailure::kWrongResult;
  }
  EXPECT_EQ(refused, 200);
  EXPECT_FALSE(session_->incumbent(id_));
  expect_usable();
}

TEST_F(MeasureFaults, RunnersThatAreNoneAreRefusedWithWhatTheySaid) {
  const auto refused = [](const std::string& runner) -> std::string {
    SessionOptions options = test_session_options();
    options.runner = runner;
    try {
      MeasureSession session(options);
      return "started";
    } catch (const UserError& e) {
      return e.id() + ": " + e.message();
    }
  };
  EXPECT_EQ(refused("somewhere").rfind("bad-runner", 0), 0u);
  EXPECT_NE(refused("cmd:no-such-program-at-all").find("not found"), std::string::npos);
  EXPECT_EQ(refused("cmd:yes garbage").rfind("worker-start", 0), 0u);
  EXPECT_EQ(refused("cmd:cat").rfind("worker-protocol", 0), 0u);  // its own question is no answer
  EXPECT_NE(refused("cmd:sh -c 'echo broken key >&2; exit 3'").find("broken key"), std::string::npos);
}

TEST_F(MeasureFaults, GreetingsAreSkippedAndTornAnswersLoseTheWorker) {
  SessionOptions options = test_session_options();
  options.runner = "cmd:sh -c 'echo Welcome to the machine; echo {}; exec " + options.worker[0] + "'";
  start(options);
  expect_usable();
  // Everything is right until the answer to the fifth request, which is torn.
  options.runner = "cmd:sh -c '" + options.worker[0] +
                   " | { for k in 1 2 3 4; do read -r line; echo \"$line\"; done; printf \"{\\\"id\\\":\"; }'";
  start(options);
  const MeasureResult result = measure(right());
  EXPECT_EQ(result.failure, MeasureFailure::kWorkerLost) << shown(result);
  EXPECT_EQ(result.attempts, 2);
}

TEST_F(MeasureFaults, NothingIsLeftWhenASessionEndsOrItsProcessIsKilled) {
  start();
  expect_usable();
  const std::vector<int> pids = session_->worker_pids();
  ASSERT_EQ(pids.size(), 2u);
  session_.reset();
  for (const int pid : pids) EXPECT_FALSE(is_alive(pid));
  // A process with a session of its own, killed.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    MeasureSession session(test_session_options());
    const std::vector<int> own = session.worker_pids();
    const ssize_t unused = write(ends[1], own.data(), own.size() * sizeof(int));
    static_cast<void>(unused);
    pause();
    _exit(0);
  }
  std::array<int, 2> own{};
  ASSERT_EQ(read(ends[0], own.data(), sizeof own), static_cast<ssize_t>(sizeof own));
  for (const int pid : own) EXPECT_TRUE(is_alive(pid));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const Timer timer;
  while ((is_alive(own[0]) || is_alive(own[1])) && timer.ms() < 10e3)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  for (const int pid : own) EXPECT_FALSE(is_alive(pid)) << pid;
  close(ends[0]);
  close(ends[1]);
}

/// A worker by hand: every bad line has an answer, and the next request works.
TEST(MeasureWorker, BadLinesGetAnswersAndTheEndOfInputEndsIt) {
  auto started = WorkerProcess::start({TS_MEASURE_WORKER}, {}, 1 << 20);
  ASSERT_TRUE(started.ok()) << started.failure().message;
  WorkerProcess& worker = *started.value();
  const auto ask = [&](const std::string& line) -> Json {
    worker.send(line + "\n");
    const Timer timer;
    while (timer.ms() < 20e3) {
      worker.pump();
      if (const auto answer = worker.next_line()) return Json::parse(answer->text);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return {};
  };
  const std::pair<const char*, const char*> cases[] = {
      {"garbage", "bad-json"},
      {"{\"id\":1,\"op\":\"hel", "bad-json"},
      {"[1,2]", "expected an object"},
      {"{\"id\":2}", "'op'"},
      {"{\"id\":3,\"op\":7}", "'op'"},
      {"{\"id\":4,\"op\":\"fly\"}", "hello, task"},
      {"{\"id\":5,\"op\":\"build\"}", "'task'"},
      {"{\"id\":6,\"op\":\"task\",\"task\":\"a\",\"value\":{\"workload\":\"nonsense\"}}", "parse-error"},
      {"{\"id\":7,\"op\":\"task\",\"task\":\"a\",\"value\":[]}", "task:"},
      {"{\"id\":8,\"op\":\"load\",\"task\":\"a\",\"kernel\":\"k\"}", "'task'"},
      {"{\"id\":9,\"op\":\"hello\",\"memory_mib\":\"many\"}", "number"},
  };
  for (const auto& [line, text] : cases) {
    const Json answer = ask(line);
    ASSERT_TRUE(answer.is_object()) << line;
    EXPECT_EQ(answer["ok"], false) << line;
    EXPECT_EQ(answer["kind"], "bad-request") << answer.dump();
    EXPECT_NE(answer["message"].get<std::string>().find(text), std::string::npos) << answer.dump();
  }
  EXPECT_EQ(ask("{\"id\":10,\"op\":\"hello\"}")["protocol"], kMeasureProtocol);
  // A task, then code that is none.
  const MeasureTask task = matmul_task(4, 4, 4);
  EXPECT_EQ(ask(Json{{"id", 11}, {"op", "task"}, {"task", "t"}, {"value", to_json(task)}}.dump())["ok"], true);
  const Json kernel = to_json(*candidate_from_text(task, matmul_text(4, 4, 4)).built);
  for (const char* code : {"", "AAAA", "f0VMRgIBAQA="}) {
    const Json answer =
        ask(Json{{"id", 12}, {"op", "load"}, {"task", "t"}, {"kernel", "k"}, {"value", kernel}, {"code", code}}.dump());
    EXPECT_EQ(answer["kind"], "build-failed") << answer.dump();
  }
  const Json check = ask("{\"id\":13,\"op\":\"check\",\"task\":\"t\",\"kernel\":\"k\",\"sets\":[0]}");
  EXPECT_NE(check["message"].get<std::string>().find("unknown-kernel"), std::string::npos) << check.dump();
  EXPECT_EQ(ask("{\"id\":14,\"op\":\"bye\"}")["ok"], true);
  EXPECT_EQ(worker.finish(/*kill_first=*/false), 0);
}

}  // namespace
}  // namespace tensmith
