// gzip by zlib, with one deflate and one inflate state that are reused. Knows no RPC but for its errors.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "rpc/code.h"

namespace tricorn::rpc {

class Gzip {
 public:
  Gzip();
  ~Gzip();

  // Level 6, one member. The result is in `room`, whose content is lost.
  std::string_view compress(std::string_view message, std::string& room);

  // All members. What is wrong, and how it is told, is what connectrpc makes of Python's zlib with a `limit` and of its
  // gzip.decompress without: only the latter takes zeros behind a member. Output stops one octet past the limit.
  Outcome<std::string_view> decompress(std::string_view data, std::optional<std::uint64_t> limit, std::string& room);

 private:
  struct Deflater;
  struct Inflater;
  Outcome<std::string_view> decompress_limited(std::string_view data, std::uint64_t limit, std::string& room);
  Outcome<std::string_view> decompress_unlimited(std::string_view data, std::string& room);

  std::unique_ptr<Deflater> deflater_;  // made when first needed
  std::unique_ptr<Inflater> inflater_;
};

}  // namespace tricorn::rpc
