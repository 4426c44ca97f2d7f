#include <filesystem>
#include <iostream>

#include "apps/cli/commands.h"
#include "apps/cli/model.h"
#include "apps/driver/tuning_report.h"
#include "runtime/base/files.h"

namespace tensmith::cli {

int report(const Options& options) {
  TS_USER_CHECK(!options.output.empty(), "bad-usage")
      << "command line: expected a file for the page, got none; add -o report.html";
  for (const std::string& file : options.files) {
    std::error_code ignored;
    TS_USER_CHECK(!std::filesystem::equivalent(file, options.output, ignored), "bad-usage")
        << "option -o: expected another file than the records, got " << options.output << "; add -o report.html";
  }
  std::vector<TuningRecord> records;
  std::vector<BadLine> bad;
  std::string title = "Tuning of";
  for (const std::string& file : options.files) {
    RecordLines lines = take(read_records(file));
    for (TuningRecord& record : lines.records) records.push_back(std::move(record));
    bad.insert(bad.end(), lines.bad.begin(), lines.bad.end());
    title += " " + file;
  }
  TS_USER_CHECK(!records.empty(), "no-records") << "report: expected tuning records, got none in " << title.substr(10)
                                                << " (" << bad.size() << " lines are something else)";
  AtomicFile page = take(AtomicFile::create(options.output));
  take(page.write(tuning_report_html(title, records, bad)));
  take(page.commit());
  std::cout << options.output << ": " << records.size() << " records\n";
  return 0;
}

}  // namespace tensmith::cli
