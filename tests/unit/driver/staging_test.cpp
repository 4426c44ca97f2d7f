/// Files come to their places together or not at all.
#include "apps/driver/staging.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "runtime/base/error.h"
#include "runtime/base/files.h"

namespace tensmith {
namespace {

namespace fs = std::filesystem;

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

size_t entries(const std::string& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(Staging, ReplacesAllAndLeavesNothingElse) {
  TempDir folder;
  write(folder.file("a"), "old a");
  fs::create_symlink("a", folder.file("link"));
  {
    Staging staging(folder.path());
    write(staging.path_for(folder.file("link")), "new a");
    write(staging.path_for(folder.file("b")), "new b");
    EXPECT_EQ(*read_file(folder.file("a")), "old a");
    staging.commit();
  }
  EXPECT_EQ(*read_file(folder.file("a")), "new a");
  EXPECT_TRUE(fs::is_symlink(folder.file("link")));
  EXPECT_EQ(*read_file(folder.file("b")), "new b");
  EXPECT_EQ(entries(folder.path()), 3u);
}

TEST(Staging, ASignalWaitsThoughAnotherThreadWouldTakeIt) {
  TempDir folder;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::thread other([] { sleep(20); });  // masks nothing
    {
      const SignalsHeld outer;
      Staging staging(folder.path());
      write(staging.path_for(folder.file("a")), "new");
      kill(getpid(), SIGTERM);
      usleep(50000);
      staging.commit();
      write(folder.file("alive"), "still");
    }
    _exit(7);  // never: the signal comes now
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  EXPECT_EQ(*read_file(folder.file("a")), "new");
  EXPECT_TRUE(fs::exists(folder.file("alive")));
  EXPECT_EQ(entries(folder.path()), 2u);
}

TEST(Staging, PutsBackWhatWasMovedBeforeAFailure) {
  TempDir folder;
  write(folder.file("a"), "old a");
  fs::create_symlink("nowhere", folder.file("dead"));
  {
    Staging staging(folder.path());
    for (const char* name : {"a", "fresh", "dead", "blocked", "last"})
      write(staging.path_for(folder.file(name)), std::string("new ") + name);
    // Somebody makes a folder there meanwhile.
    fs::create_directory(folder.file("blocked"));
    try {
      staging.commit();
      FAIL() << "a folder was replaced";
    } catch (const UserError& e) {
      EXPECT_EQ(e.id(), "cannot-write");
      EXPECT_NE(e.message().find("all outputs are as they were"), std::string::npos) << e.message();
      EXPECT_NE(e.message().find("blocked"), std::string::npos) << e.message();
    }
  }
  EXPECT_EQ(*read_file(folder.file("a")), "old a");
  EXPECT_EQ(fs::read_symlink(folder.file("dead")), "nowhere");
  EXPECT_FALSE(fs::exists(folder.file("fresh")));
  EXPECT_FALSE(fs::exists(folder.file("last")));
  EXPECT_EQ(entries(folder.path()), 3u);
}

TEST(Staging, AFileThatWasNeverWrittenIsAFailure) {
  TempDir folder;
  write(folder.file("a"), "old a");
  {
    Staging staging(folder.path());
    const std::string staged = staging.path_for(folder.file("a"));
    write(staged, "new a");
    staging.path_for(folder.file("never_written"));
    EXPECT_THROW(staging.commit(), UserError);
  }
  EXPECT_EQ(*read_file(folder.file("a")), "old a");
  EXPECT_EQ(entries(folder.path()), 1u);
}

}  // namespace
}  // namespace tensmith
