// The message encodings that the core does itself. A custom one is the border's; it has a name and nothing here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rpc/code.h"
#include "rpc/gzip.h"

namespace tricorn::rpc {

// br and zstd will be a value here, a name in compress.cc and a case in Compressor.
enum class Encoding : std::uint8_t { identity, gzip };

std::string_view name(Encoding encoding);
std::optional<Encoding> encoding_named(std::string_view name);

// One for a thread: it reuses its states. A result lies in `room`, or is the argument itself for identity.
class Compressor {
 public:
  std::string_view compress(Encoding encoding, std::string_view message, std::string& room);
  // `limit` on the octets of the result; none: no limit. Costs at most a small multiple of it in memory.
  Outcome<std::string_view> decompress(Encoding encoding, std::string_view data, std::optional<std::uint64_t> limit,
                                       std::string& room);

 private:
  Gzip gzip_;
};

}  // namespace tricorn::rpc
