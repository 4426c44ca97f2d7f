#include "autotune/measure/line_protocol.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

namespace tensmith {

namespace {
constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
}  // namespace

void LineBuffer::append(std::string_view bytes) {
  if (at_ > 0 && at_ >= buffer_.size() / 2) {
    buffer_.erase(0, at_);
    searched_ -= at_;
    at_ = 0;
  }
  buffer_ += bytes;
}

std::optional<LineBuffer::Line> LineBuffer::next() {
  for (;;) {
    const size_t end = buffer_.find('\n', searched_);
    if (end == std::string::npos) {
      searched_ = buffer_.size();
      if (static_cast<int64_t>(buffer_.size() - at_) > limit_ || skipping_) {
        const bool first = !skipping_;
        skipping_ = true;
        buffer_.clear();
        buffer_.shrink_to_fit();
        at_ = searched_ = 0;
        if (first) return Line{{}, true};
      }
      return std::nullopt;
    }
    const size_t start = at_;
    at_ = searched_ = end + 1;
    if (skipping_) {  // the tail of a line that was told of already
      skipping_ = false;
      continue;
    }
    if (static_cast<int64_t>(end - start) > limit_) return Line{{}, true};
    return Line{buffer_.substr(start, end - start)};
  }
}

std::optional<LineBuffer::Line> LineReader::next() {
  std::array<char, 65536> bytes;
  for (;;) {
    if (std::optional<LineBuffer::Line> line = buffer_.next()) return line;
    const ssize_t count = read(file_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    buffer_.append({bytes.data(), static_cast<size_t>(count)});
  }
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

std::string json_line(const Json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string to_base64(const std::vector<uint8_t>& bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t k = 0; k < bytes.size(); k += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - k);
    uint32_t bits = static_cast<uint32_t>(bytes[k]) << 16;
    if (count > 1) bits |= static_cast<uint32_t>(bytes[k + 1]) << 8;
    if (count > 2) bits |= bytes[k + 2];
    for (size_t d = 0; d < 4; ++d) text += d <= count ? kDigits[bits >> (18 - 6 * d) & 63] : '=';
  }
  return text;
}

Result<std::vector<uint8_t>> from_base64(std::string_view text) {
  static const std::array<int8_t, 256> values = [] {
    std::array<int8_t, 256> table;
    table.fill(-1);
    for (size_t k = 0; k < kDigits.size(); ++k) table[static_cast<uint8_t>(kDigits[k])] = static_cast<int8_t>(k);
    return table;
  }();
  const auto fail = [](const std::string& what) { return Failure{"bad-base64", "base64: " + what}; };
  if (text.size() % 4 != 0) return fail("expected a multiple of 4 digits, got " + std::to_string(text.size()));
  std::vector<uint8_t> bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t k = 0; k < text.size(); k += 4) {
    size_t digits = 4;
    if (k + 4 == text.size())
      while (digits > 2 && text[k + digits - 1] == '=') --digits;
    uint32_t bits = 0;
    for (size_t d = 0; d < 4; ++d) {
      const int value = d < digits ? values[static_cast<uint8_t>(text[k + d])] : 0;
      if (value < 0) return fail("expected a digit at " + std::to_string(k + d) + ", got another character");
      bits = bits << 6 | static_cast<uint32_t>(value);
    }
    for (size_t b = 0; b + 1 < digits; ++b) bytes.push_back(static_cast<uint8_t>(bits >> (16 - 8 * b)));
  }
  return bytes;
}

}  // namespace tensmith
