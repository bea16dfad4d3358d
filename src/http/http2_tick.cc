// The clocks of Http2Session: what is ended because it takes too long.
#include "http/http2_session.h"

namespace tricorn {
namespace {

constexpr Millis k_round_trip = 1'000;  // between the two GOAWAYs when no ping answer comes
constexpr Millis k_linger = 1'000;      // for the rest of a body that nobody reads
constexpr Millis k_rate_grace = 30'000;

bool overdue(Millis now, Millis since, Millis limit) { return limit > 0 && now >= since && now - since >= limit; }

// A call may be silent for as long as it likes (it has deadlines of its own).
bool is_rpc_stream(const Headers& headers) {
  const auto type = headers.find("content-type");
  return type && (type->starts_with("application/grpc") || type->starts_with("application/connect+"));
}

}  // namespace

Result<void> Http2Session::tick(Millis now) {
  if (auto ok = check_handshake(now); !ok) return ok;
  if (scanner_.in_header_block() && overdue(now, guard_.block_since(), host_.limits.timeout_request_header))
    (void)terminate(Http2Error::no_error, Fault::timeout, "a header block takes too long");
  check_drain(now);
  open_.each([&](Http2Stream& stream) { check_stream(stream, now); });
  check_idle(now);
  ticked_at_ = now;
  return {};
}

Result<void> Http2Session::check_handshake(Millis now) {
  if (eof_) return {};  // neither can come any more
  const Limits& limits = host_.limits;
  if (!greeted_ && overdue(now, opened_at_, limits.timeout_first_byte))
    return fail(Fault::timeout, "no HTTP/2 preface");
  if (!acknowledged_ && overdue(now, opened_at_, limits.timeout_h2_settings))
    (void)terminate(Http2Error::settings_timeout, Fault::timeout, "SETTINGS not acknowledged");
  return {};
}

void Http2Session::check_drain(Millis now) {
  if (drain_ == Drain::announced && overdue(now, drain_at_, k_round_trip)) last_goaway();
}

void Http2Session::check_idle(Millis now) {
  if (!open_.empty() || (!stalled_ && !overdue(now, active_at_, host_.limits.timeout_h2_idle))) return;
  (void)terminate(Http2Error::no_error, Fault::timeout, "idle");
}

void Http2Session::check_stream(Http2Stream& stream, Millis now) {
  if (!stream.exchange || stream.exchange->gone()) return;  // its head is incomplete, or it is being reset
  if (stalled_writing(stream, now)) {
    stalled_ = true;
    return drop(stream, Http2Error::cancel);
  }
  if (stream.sent && !stream.ended && !stream.exchange->call() && overdue(now, stream.sent_at, k_linger))
    return drop(stream, Http2Error::no_error);
  if (!stalled_body(stream, now)) return;
  stalled_ = true;
  refuse(stream, 408);
}

bool Http2Session::owes_octets(const Http2Stream& stream) {
  return !stream.sent && (!stream.exchange->out().empty() || stream.exchange->send_state() == Send::done);
}

bool Http2Session::stalled_writing(Http2Stream& stream, Millis now) const {
  if (!owes_octets(stream)) stream.moved_at = now;
  return overdue(now, stream.moved_at, host_.limits.timeout_write);
}

// The application waits for the body and the peer sends none, or next to none.
bool Http2Session::stalled_body(Http2Stream& stream, Millis now) const {
  const Exchange& exchange = *stream.exchange;
  if (stream.ended || eof_ || exchange.send_state() != Send::idle || exchange.unread() > 0) return false;
  if (is_rpc_stream(exchange.request().headers)) return false;
  stream.body_waited += now - ticked_at_;
  if (overdue(now, stream.body_at, host_.limits.timeout_request_body)) return true;
  if (!stream.declared || stream.body_waited <= k_rate_grace) return false;
  return stream.received * 1000 < host_.limits.min_body_rate * (stream.body_waited - k_rate_grace);
}

}  // namespace tricorn
