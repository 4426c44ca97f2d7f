#include "runtime/base/sha256.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

namespace tensmith {

std::array<uint8_t, 32> Sha256::digest() {
  std::array<uint8_t, 32> out;
  tensmith_sha256_final(&hash_, out.data());
  return out;
}

std::string Sha256::hex() { return sha256_text(digest()); }

std::string sha256_text(const std::array<uint8_t, 32>& digest) {
  std::string text;
  for (uint8_t byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string sha256_hex(std::string_view data) {
  Sha256 hash;
  hash.update(data);
  return hash.hex();
}

Result<std::string> sha256_file(const std::string& path) {
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (!file) return Failure{"cannot-read", path + ": cannot be read: " + std::strerror(errno)};
  Sha256 hash;
  std::setvbuf(file.get(), nullptr, _IONBF, 0);  // straight into ours
  std::vector<char> buffer(1 << 18);
  while (size_t got = std::fread(buffer.data(), 1, buffer.size(), file.get())) hash.update(buffer.data(), got);
  if (std::ferror(file.get())) return Failure{"cannot-read", path + ": cannot be read: " + std::strerror(errno)};
  return hash.hex();
}

}  // namespace tensmith
