#include "runtime/export/weights_writer.h"

#include <cstring>
#include <optional>
#include <system_error>
#include <thread>

#include "runtime/export/weights_file.h"

namespace tensmith {

namespace {

constexpr size_t kWorthAThread = 1 << 20;

}  // namespace

Result<WeightsWriter> WeightsWriter::create(const std::string& path, int64_t data_bytes) {
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file) return file.failure();
  tensmith_weights_header header = {};
  std::memcpy(header.magic, TENSMITH_WEIGHTS_MAGIC, sizeof header.magic);
  header.version = TENSMITH_WEIGHTS_VERSION;
  header.header_bytes = TENSMITH_WEIGHTS_HEADER_BYTES;
  header.data_bytes = static_cast<uint64_t>(data_bytes);
  std::string page(TENSMITH_WEIGHTS_HEADER_BYTES, '\0');
  std::memcpy(page.data(), &header, sizeof header);
  WeightsWriter writer(std::move(file).value());
  writer.left_ = data_bytes;
  writer.hash_.update(page);
  if (Result<void> written = writer.file_.write(page); !written) return written.failure();
  return writer;
}

Result<void> WeightsWriter::write(std::span<const uint8_t> data) {
  left_ -= static_cast<int64_t>(data.size());
  TS_CHECK(left_ >= 0) << left_;
  std::optional<std::jthread> hashing;  // the system copies as long as the CPU hashes
  if (data.size() >= kWorthAThread) {
    try {
      hashing.emplace([&] { hash_.update(data.data(), data.size()); });
    } catch (const std::system_error&) {
      // No thread to be had: one after the other.
    }
  }
  if (!hashing) hash_.update(data.data(), data.size());
  return file_.write(data.data(), data.size());
}

Result<WeightsDigests> WeightsWriter::finish() {
  TS_CHECK(left_ == 0) << left_;
  WeightsDigests digests;
  Sha256 file_hash = hash_;
  digests.weights = hash_.digest();
  file_hash.update(digests.weights.data(), digests.weights.size());
  digests.file = file_hash.digest();
  if (Result<void> written = file_.write(digests.weights.data(), digests.weights.size()); !written)
    return written.failure();
  if (Result<void> done = file_.commit(); !done) return done.failure();
  return digests;
}

Result<std::array<uint8_t, 32>> write_weights_file(const std::string& path, std::span<const std::byte> data) {
  Result<WeightsWriter> created = WeightsWriter::create(path, static_cast<int64_t>(data.size()));
  if (!created) return created.failure();
  WeightsWriter writer = std::move(created).value();
  const auto* bytes = reinterpret_cast<const uint8_t*>(data.data());
  if (Result<void> written = writer.write({bytes, data.size()}); !written) return written.failure();
  const Result<WeightsDigests> digests = writer.finish();
  if (!digests) return digests.failure();
  return digests->weights;
}

}  // namespace tensmith
