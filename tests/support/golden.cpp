#include "tests/support/golden.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tensmith {

void expect_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(TS_GOLDEN_DIR) / name;
  if (std::getenv("UPDATE_GOLDEN")) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file) << "golden file " << name << " is missing; run with UPDATE_GOLDEN=1 to make it; the text is:\n"
                    << text;
  std::stringstream content;
  content << file.rdbuf();
  if (content.str() == text) return;
  std::istringstream expected(content.str()), actual(text);
  std::string want, got;
  for (int line = 1;; ++line) {
    const bool more_want = static_cast<bool>(std::getline(expected, want));
    const bool more_got = static_cast<bool>(std::getline(actual, got));
    if (!more_want && !more_got) break;
    if (more_want != more_got || want != got) {
      ADD_FAILURE() << "golden " << name << " differs at line " << line
                    << "\n  expected: " << (more_want ? want : "<end>")
                    << "\n  got:      " << (more_got ? got : "<end>") << "\nwhole text:\n"
                    << text;
      return;
    }
  }
}

}  // namespace tensmith
