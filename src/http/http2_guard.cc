#include "http/http2_guard.h"

#include <algorithm>

namespace tricorn {

bool TokenBucket::take(Millis now) {
  if (full_ == 0) return true;
  left_ = std::min(full_, left_ + (now - std::min(now, filled_)) * rate_);
  filled_ = now;
  if (left_ < 1000) return false;
  left_ -= 1000;
  return true;
}

Http2Guard::Http2Guard(const Limits& limits)
    : limits_(limits),
      resets_(limits.h2_reset_burst, limits.h2_reset_rate),
      glitches_(limits.h2_glitch_burst, limits.h2_glitch_rate) {}

bool Http2Guard::asks(const Frame& frame) const {
  switch (frame.type) {
    case FrameType::data:
    case FrameType::rst_stream:
    case FrameType::settings: return true;
    case FrameType::headers: return frame.stream <= highest_;
    default: return false;
  }
}

std::optional<Verdict> Http2Guard::judge(const Frame& frame, Known known, Millis now) {
  switch (frame.type) {
    case FrameType::data: return on_data(frame, known, now);
    case FrameType::headers: return on_headers(frame, known, now);
    case FrameType::priority: return on_priority(frame, now);
    case FrameType::rst_stream: return on_reset(known, now);
    case FrameType::settings: return frame.has(FrameFlag::ack) ? std::nullopt : glitch(now);
    case FrameType::push_promise: return std::nullopt;  // nghttp2 ends the connection
    case FrameType::ping: return on_ping(frame, now);
    case FrameType::goaway: return goaways_++ == 0 ? std::nullopt : glitch(now);
    case FrameType::window_update: return on_window_update(now);
    case FrameType::continuation:
      if (++continuations_ <= limits_.h2_max_continuations) return std::nullopt;
      return Verdict{Http2Error::enhance_your_calm, "too many CONTINUATION frames"};
  }
  return glitch(now);  // a type that nobody knows: ignored, at its sender's cost
}

std::optional<Verdict> Http2Guard::judge_reset(Http2Error code, Millis now) {
  // Not the peer's doing: the rest of a body that nobody wants, an application that failed, a time-out.
  if (code == Http2Error::no_error || code == Http2Error::internal_error || code == Http2Error::cancel)
    return std::nullopt;
  if (resets_.take(now)) return std::nullopt;
  return Verdict{Http2Error::enhance_your_calm, "too many bad streams"};
}

void Http2Guard::sent_data() {
  traffic_ = true;
  updates_ += k_updates_a_frame;
}

std::optional<Verdict> Http2Guard::glitch(Millis now) {
  if (glitches_.take(now)) return std::nullopt;
  return Verdict{Http2Error::enhance_your_calm, "too many frames to no purpose"};
}

std::optional<Verdict> Http2Guard::on_headers(const Frame& frame, Known known, Millis now) {
  traffic_ = true;
  continuations_ = 0;
  block_since_ = now;
  // No longer in RFC 9113, but nobody means it: a stream that depends on itself (RFC 7540 5.3.1).
  if (frame.stream != 0 && frame.dependency() == frame.stream)
    return Verdict{Http2Error::protocol_error, "a stream depends on itself"};
  if (frame.stream > highest_) open(frame.stream);
  else if (known == Known::nothing) return closed(frame.stream, Http2Error::protocol_error);
  return std::nullopt;
}

// RFC 9113 5.1.1: the first use of an id closes all lower ones that were not used.
void Http2Guard::open(std::uint32_t stream) {
  if (stream > highest_ + 2 && stream % 2 == 1)
    skipped_[skipped_next_++ % skipped_.size()] = {highest_ + 1, stream - 1};
  highest_ = stream;
  updates_ += k_updates_a_frame;  // some clients widen the window of each new stream
}

// A stream that the session does not hold. One that we have reset may still be on its way here: that is ignored.
std::optional<Verdict> Http2Guard::closed(std::uint32_t stream, Http2Error skipped) const {
  if (std::ranges::find(ended_, stream) != ended_.end() && stream != 0)
    return Verdict{Http2Error::stream_closed, "a frame on a closed stream"};
  for (const Range& range : skipped_)
    if (range.first <= stream && stream <= range.last) return Verdict{skipped, "a stream id that was passed over"};
  return std::nullopt;
}

std::optional<Verdict> Http2Guard::on_data(const Frame& frame, Known known, Millis now) {
  traffic_ = true;
  if (known == Known::nothing)
    if (auto verdict = closed(frame.stream, Http2Error::stream_closed)) return verdict;
  if (frame.length == 0 && !frame.has(FrameFlag::end_stream)) return glitch(now);
  return std::nullopt;
}

std::optional<Verdict> Http2Guard::on_priority(const Frame& frame, Millis now) {
  if (frame.stream == 0) return Verdict{Http2Error::protocol_error, "PRIORITY on stream 0"};  // RFC 9113 6.3
  if (frame.dependency() == frame.stream) return Verdict{Http2Error::protocol_error, "a stream depends on itself"};
  return glitch(now);
}

// A reset throws work away only while the answer is not complete.
std::optional<Verdict> Http2Guard::on_reset(Known known, Millis now) {
  if (known == Known::answered) return std::nullopt;
  if (known == Known::nothing) return glitch(now);
  if (resets_.take(now)) return std::nullopt;
  return Verdict{Http2Error::enhance_your_calm, "too many streams reset"};
}

std::optional<Verdict> Http2Guard::on_ping(const Frame& frame, Millis now) {
  if (frame.has(FrameFlag::ack)) {
    if (pings_ == 0) return glitch(now);
    --pings_;
    return std::nullopt;
  }
  if (std::exchange(traffic_, false)) return std::nullopt;
  return glitch(now);
}

std::optional<Verdict> Http2Guard::on_window_update(Millis now) {
  if (updates_ == 0) return glitch(now);
  --updates_;
  return std::nullopt;
}

}  // namespace tricorn
