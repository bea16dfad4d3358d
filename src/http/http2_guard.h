// Whether a peer's HTTP/2 frames are worth their cost, and whether its streams are in order. Pure counting: each frame
// is judged before nghttp2 acts on it; a verdict ends the connection.
// What ordinary clients do by the thousand must never count here: window updates and pings of a fast stream, requests
// without end, cancelled calls at a human rate.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "http/host.h"
#include "http/http2_frames.h"

namespace tricorn {

// A bucket of `burst` tokens that refills at `rate` a second. Burst 0: never empty.
class TokenBucket {
 public:
  TokenBucket(std::uint32_t burst, std::uint32_t rate)
      : full_(std::uint64_t{burst} * 1000), rate_(rate), left_(full_) {}
  // False: the bucket is empty.
  bool take(Millis now);

 private:
  std::uint64_t full_;  // in thousandths
  std::uint64_t rate_;
  std::uint64_t left_;
  Millis filled_ = 0;
};

struct Verdict {
  Http2Error code;
  std::string_view why;
};

// What the session holds for the stream of a frame.
enum class Known : std::uint8_t {
  nothing,   // not opened, closed, or refused
  open,      // the answer is not complete
  answered,  // the answer is out, the request may still arrive
};

class Http2Guard {
 public:
  explicit Http2Guard(const Limits& limits);

  // Whether judge() needs to know about the frame's stream, as it is after all frames before this one.
  bool asks(const Frame& frame) const;
  std::optional<Verdict> judge(const Frame& frame, Known known, Millis now);
  // A stream was reset by us with `code`.
  std::optional<Verdict> judge_reset(Http2Error code, Millis now);

  void sent_headers() { traffic_ = true; }
  void sent_data();
  void sent_ping() { ++pings_; }
  // A stream closed that the peer had ended itself: nothing more may come on it.
  void ended(std::uint32_t stream) { ended_[ended_next_++ % ended_.size()] = stream; }

  std::uint32_t highest() const { return highest_; }
  // When the latest header block began.
  Millis block_since() const { return block_since_; }

 private:
  std::optional<Verdict> glitch(Millis now);
  std::optional<Verdict> on_headers(const Frame& frame, Known known, Millis now);
  std::optional<Verdict> on_data(const Frame& frame, Known known, Millis now);
  std::optional<Verdict> on_priority(const Frame& frame, Millis now);
  std::optional<Verdict> on_reset(Known known, Millis now);
  std::optional<Verdict> on_ping(const Frame& frame, Millis now);
  std::optional<Verdict> on_window_update(Millis now);
  std::optional<Verdict> closed(std::uint32_t stream, Http2Error skipped) const;
  void open(std::uint32_t stream);

  static constexpr std::uint64_t k_updates_a_frame = 10;

  struct Range {
    std::uint32_t first = 1, last = 0;
  };
  const Limits& limits_;
  TokenBucket resets_;
  TokenBucket glitches_;
  std::uint64_t updates_ = k_updates_a_frame;  // window updates that are expected still
  std::uint32_t continuations_ = 0;
  std::uint32_t pings_ = 0;  // ours, not yet answered
  std::uint32_t goaways_ = 0;
  bool traffic_ = true;  // HEADERS or DATA since the last ping
  Millis block_since_ = 0;
  std::uint32_t highest_ = 0;
  std::array<std::uint32_t, 32> ended_{};  // the latest
  std::size_t ended_next_ = 0;
  std::array<Range, 8> skipped_{};  // stream ids that a higher one has closed unused; the latest
  std::size_t skipped_next_ = 0;
};

}  // namespace tricorn
