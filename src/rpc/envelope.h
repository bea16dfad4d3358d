// The five-octet framing of gRPC, gRPC-Web and Connect streams: flags, length, message.
// The reader judges a message by its head, before any of it has arrived, and keeps no more memory than has arrived.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rpc/code.h"

namespace tricorn::rpc {

// Flags. A request has none but the first; the others mark the last frame of an answer.
inline constexpr std::uint8_t k_compressed = 0x01;
inline constexpr std::uint8_t k_end_stream = 0x02;  // Connect: the end-of-stream JSON
inline constexpr std::uint8_t k_trailers = 0x80;    // gRPC-Web: the trailer block

using EnvelopeHead = std::array<char, 5>;
constexpr EnvelopeHead envelope_head(std::uint8_t flags, std::uint32_t size) {
  return {static_cast<char>(flags), static_cast<char>(size >> 24), static_cast<char>(size >> 16),
          static_cast<char>(size >> 8), static_cast<char>(size)};
}
void append_envelope(std::string& to, std::uint8_t flags, std::string_view message);  // below 4 GiB

struct Envelope {
  std::uint8_t flags;
  std::string_view message;
  bool compressed() const { return (flags & k_compressed) != 0; }
};

class EnvelopeReader {
 public:
  // `limit` on the octets of one message as it is on the wire; none: no limit.
  explicit EnvelopeReader(std::optional<std::uint64_t> limit) : limit_(limit) {}

  // Takes octets off the front of `in`, up to the end of one message. Without a message all of `in` was taken.
  // A message that lies whole in `in` is not copied: the view is valid until the next call and while `in` is.
  // After an error the same error comes again.
  Outcome<std::optional<Envelope>> next(std::string_view& in);
  // The input has ended: an error if that was inside an envelope.
  Outcome<> end() const;
  // Octets of memory held, for a message that came in pieces.
  std::size_t held() const { return message_.capacity(); }

 private:
  bool has_head() const { return head_size_ == head_.size(); }
  std::uint32_t size() const;
  Outcome<> check_head() const;
  void take(std::string_view& in);
  Envelope deliver(std::string_view message);
  void forget();

  std::optional<std::uint64_t> limit_;
  EnvelopeHead head_{};
  std::size_t head_size_ = 0;  // octets of the head that have arrived
  std::string message_;        // what has arrived of a message that came in pieces
  bool delivered_ = false;     // message_ was handed out by the last call
};

// A message says it is compressed, and the request names no compression.
std::unexpected<RpcError> fail_compressed_without_encoding();

}  // namespace tricorn::rpc
