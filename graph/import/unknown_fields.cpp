#include "graph/import/unknown_fields.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

namespace tensmith::graph {

std::vector<std::string> unknown_bytes(const std::string& unknown_fields, int field) {
  using google::protobuf::internal::WireFormatLite;
  std::vector<std::string> found;
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(unknown_fields.data()),
                                            static_cast<int>(unknown_fields.size()));
  while (const uint32_t tag = in.ReadTag()) {
    if (WireFormatLite::GetTagFieldNumber(tag) == field &&
        WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      uint32_t length = 0;
      std::string bytes;
      if (!in.ReadVarint32(&length) || !in.ReadString(&bytes, static_cast<int>(length))) break;
      found.push_back(std::move(bytes));
    } else if (!WireFormatLite::SkipField(&in, tag)) {
      break;
    }
  }
  return found;
}

}  // namespace tensmith::graph
