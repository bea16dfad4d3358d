#include "rpc/grpc.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/text.h"

namespace tricorn::rpc {
namespace {

bool is_unreserved(char c) {  // RFC 3986 2.3
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view{"-._~"}.contains(c);
}

Headers with(const Headers& application, std::span<const Field> status) {
  Headers result;
  for (const Field field : application)
    if (std::ranges::none_of(status, [&](Field own) { return own.name == field.name; }))
      result.add(field.name, field.value);
  for (const Field own : status) result.add(own.name, own.value);
  return result;
}

}  // namespace

Headers status_trailers(const Headers& application, const RpcError& error, std::string_view details) {
  const std::string status = std::to_string(static_cast<unsigned>(error.code));
  const std::string message = percent_encode(error.message);
  const std::string binary = base64(details);
  std::vector<Field> fields{{"grpc-status", status}};
  if (!message.empty()) fields.push_back({"grpc-message", message});
  if (!binary.empty()) fields.push_back({"grpc-status-details-bin", binary});
  return with(application, fields);
}

Headers ok_trailers(const Headers& application) {
  const Field ok{"grpc-status", "0"};
  return with(application, {&ok, 1});
}

Result<std::string> trailer_block(const Headers& trailers) {
  std::string block;
  block.reserve(trailers.octets() + 4 * trailers.size());
  for (const Field field : trailers) {
    if (!is_token(field.name) || !is_field_value(field.value))
      return tricorn::fail(Fault::value, "trailer cannot be sent: " + percent_encode(field.name));
    block.append(field.name).append(": ").append(field.value).append("\r\n");
  }
  return block;
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    const auto octet = static_cast<unsigned char>(c);
    if (is_unreserved(c)) {
      result += c;
    } else {
      result += '%';
      result += digits[octet >> 4];
      result += digits[octet & 15];
    }
  }
  return result;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  result.reserve((bytes.size() * 4 + 2) / 3);
  std::uint32_t bits = 0;
  unsigned waiting = 0;  // bits not yet written
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    for (waiting += 8; waiting >= 6; waiting -= 6) result += alphabet[bits >> (waiting - 6) & 63];
  }
  if (waiting > 0) result += alphabet[bits << (6 - waiting) & 63];
  return result;
}

}  // namespace tricorn::rpc
