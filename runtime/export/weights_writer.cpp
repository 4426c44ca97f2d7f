#include "runtime/export/weights_writer.h"

#include <cstring>

#include "runtime/base/files.h"
#include "runtime/base/sha256.h"
#include "runtime/export/weights_file.h"

namespace tensmith {

Result<std::array<uint8_t, 32>> write_weights_file(const std::string& path, std::span<const std::byte> data) {
  Sha256 hash;
  hash.update(data.data(), data.size());
  const std::array<uint8_t, 32> digest = hash.digest();
  tensmith_weights_header header = {};
  std::memcpy(header.magic, TENSMITH_WEIGHTS_MAGIC, sizeof header.magic);
  header.version = TENSMITH_WEIGHTS_VERSION;
  header.header_bytes = TENSMITH_WEIGHTS_HEADER_BYTES;
  header.data_bytes = data.size();
  std::memcpy(header.sha256, digest.data(), digest.size());
  std::string page(TENSMITH_WEIGHTS_HEADER_BYTES, '\0');
  std::memcpy(page.data(), &header, sizeof header);

  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file) return file.failure();
  AtomicFile out = std::move(file).value();
  for (Result<void> step : {out.write(page), out.write(data.data(), data.size())})
    if (!step) return step.failure();
  if (Result<void> done = out.commit(); !done) return done.failure();
  return digest;
}

}  // namespace tensmith
