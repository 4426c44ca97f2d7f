/// The connection between session and worker: JSON objects, one a line; object code as base64 where it cannot go by
/// shared memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"

namespace tensmith {

/// Changes whenever a worker of another version could misunderstand a request.
inline constexpr int kMeasureProtocol = 1;

/// Cuts a stream of bytes into lines. A line that is too long is dropped and told of, and the stream goes on behind it.
class LineBuffer {
 public:
  explicit LineBuffer(int64_t limit) : limit_(limit) {}
  void append(std::string_view bytes);
  struct Line {
    std::string text;  ///< without the newline
    bool too_long = false;
  };
  std::optional<Line> next();
  /// What stands behind the last newline.
  std::string_view rest() const { return std::string_view(buffer_).substr(at_); }

 private:
  std::string buffer_;
  size_t at_ = 0, searched_ = 0;
  int64_t limit_;
  bool skipping_ = false;
};

/// Reads whole lines from a file descriptor; waits for them.
class LineReader {
 public:
  LineReader(int file, int64_t limit) : file_(file), buffer_(limit) {}
  /// Null at the end of the stream.
  std::optional<LineBuffer::Line> next();

 private:
  int file_;
  LineBuffer buffer_;
};

/// Writes all bytes; false when the other side is gone. Never raises SIGPIPE's default action if that is ignored.
bool write_all(int file, std::string_view bytes);
/// One line of text for a JSON value; bytes that are no UTF-8 are replaced.
std::string json_line(const Json& json);

std::string to_base64(const std::vector<uint8_t>& bytes);
/// Errors: bad-base64.
Result<std::vector<uint8_t>> from_base64(std::string_view text);

}  // namespace tensmith
