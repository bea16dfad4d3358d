// HTTP/2 frames as they pass by (RFC 9113 4.1): found in the octet stream, their heads read, nothing more.
// nghttp2 does the protocol. This sees every frame before nghttp2 does, those it drops in silence too, so that what a
// peer costs can be counted. It keeps no payload but the few octets that a verdict needs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tricorn {

// RFC 9113 7.
enum class Http2Error : std::uint32_t {
  no_error = 0,
  protocol_error = 1,
  internal_error = 2,
  flow_control_error = 3,
  settings_timeout = 4,
  stream_closed = 5,
  frame_size_error = 6,
  refused_stream = 7,
  cancel = 8,
  compression_error = 9,
  connect_error = 10,
  enhance_your_calm = 11,
};

enum class FrameType : std::uint8_t {
  data = 0,
  headers = 1,
  priority = 2,
  rst_stream = 3,
  settings = 4,
  push_promise = 5,
  ping = 6,
  goaway = 7,
  window_update = 8,
  continuation = 9,
};

enum class FrameFlag : std::uint8_t { ack = 1, end_stream = 1, end_headers = 4, padded = 8, priority = 32 };

struct Frame {
  std::uint32_t length = 0;
  FrameType type{};  // may hold a value that no enumerator names
  std::uint8_t flags = 0;
  std::uint32_t stream = 0;
  std::string_view payload;  // its first octets, for the types that need judging by them

  bool has(FrameFlag flag) const { return (flags & static_cast<std::uint8_t>(flag)) != 0; }
  // The stream that this one is said to depend on: PRIORITY, and HEADERS with that flag (RFC 9113 6.3). 0: none.
  std::uint32_t dependency() const;
  // The last SETTINGS_INITIAL_WINDOW_SIZE of a SETTINGS frame, or -1.
  std::int64_t initial_window() const;
};

class FrameScanner {
 public:
  // Moves `at` past the next piece of `in`: a head, or a payload. True: `frame()` is a frame whose head has just been
  // completed; the octets of `in` that belong to it start at `start()`.
  bool next(std::string_view in, std::size_t& at);
  const Frame& frame() const { return frame_; }
  std::size_t start() const { return start_; }
  // Whether a header block has begun and is not complete.
  bool in_header_block() const;
  // Call before the first next() of another `in`.
  void restart() { start_ = 0; }

  static constexpr std::size_t k_preface = 24;  // "PRI * HTTP/2.0..." (RFC 9113 3.4)

 private:
  static constexpr std::size_t k_head = 9;
  static constexpr std::size_t k_settings = 6 * 32;  // nghttp2 refuses more than 32 settings in a frame
  void parse();
  std::size_t wanted() const;

  std::array<char, k_head + k_settings> octets_{};
  std::size_t filled_ = 0;
  std::size_t need_ = k_head;
  std::size_t skip_ = k_preface;
  std::size_t start_ = 0;
  Frame frame_;
};

}  // namespace tricorn
