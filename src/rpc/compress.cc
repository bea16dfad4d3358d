#include "rpc/compress.h"

#include <array>

namespace tricorn::rpc {
namespace {

constexpr std::array<std::string_view, 2> k_names{"identity", "gzip"};  // in order of Encoding

}  // namespace

std::string_view name(Encoding encoding) { return k_names[static_cast<std::size_t>(encoding)]; }

std::optional<Encoding> encoding_named(std::string_view name) {
  for (std::size_t i = 0; i < k_names.size(); ++i)
    if (k_names[i] == name) return static_cast<Encoding>(i);
  return std::nullopt;
}

std::string_view Compressor::compress(Encoding encoding, std::string_view message, std::string& room) {
  if (encoding == Encoding::identity) return message;
  return gzip_.compress(message, room);
}

Outcome<std::string_view> Compressor::decompress(Encoding encoding, std::string_view data,
                                                 std::optional<std::uint64_t> limit, std::string& room) {
  if (encoding == Encoding::gzip) return gzip_.decompress(data, limit, room);
  if (limit && data.size() > *limit) return fail_too_large(*limit);
  return data;
}

}  // namespace tricorn::rpc
