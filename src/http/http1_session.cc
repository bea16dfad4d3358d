// HTTP/1.1 on one connection: requests one at a time, answers in order.
//
// The request in hand is `exchange_`. Octets behind it wait in `pending_` until its answer is written whole; a
// request is never parsed before that, so that answers cannot overtake and an error is answered in its turn.
#include <algorithm>
#include <string>

#include "base/buffer.h"
#include "http/http1.h"
#include "http/http1_request.h"
#include "http/http1_response.h"
#include "http/session.h"

namespace tricorn {
namespace {

constexpr std::uint64_t k_drain = 256 * 1024;  // of a body that nobody reads: above, closing is cheaper
constexpr Millis k_rate_grace = 30'000;        // before a slow body is measured

bool over(std::uint64_t size, std::uint64_t limit) { return limit > 0 && size > limit; }
bool expired(Millis since, Millis now, Millis limit) { return limit > 0 && now >= since + limit; }

class Http1Session final : public Session {
 public:
  Http1Session(Host& host, DirtyHook& dirty, const Peer& peer)
      : host_(host), dirty_(dirty), peer_(peer), parser_(host.limits), since_(host.clock.now()), ticked_(since_) {}
  ~Http1Session() override { release(); }

  Result<void> feed(std::string_view plain) override;
  void eof() override;
  void eof_ahead() override;
  void gone() override;
  void fill(Outbox& out, std::size_t budget) override;
  bool pending() const override;
  bool reading() const override;
  void drain() override;
  bool finished() const override;
  bool idle() const override { return !exchange_ && reply_.empty() && in_ == In::idle; }
  Result<void> tick(Millis now) override;

  void wake(Exchange&) override { touch(); }
  void consumed(Exchange& exchange, std::size_t size) override;
  void want_body(Exchange&) override;
  void abandon(Exchange& exchange, Fault) override;

 private:
  // Where the input stands.
  enum class In : std::uint8_t {
    idle,  // between requests
    head,  // in a head
    body,  // in the body of the request in hand; without one, in a body that is thrown away
    done,  // behind the request in hand
    shut,  // nothing is parsed any more
  };
  enum class Continue : std::uint8_t { not_expected, expected, wanted, sent };

  std::size_t parse(std::string_view input);
  bool begin_head(std::string_view input);
  void on_head();
  void on_body(std::string_view body);
  void on_end();
  void malformed(int status);
  void refuse(int status);
  void finish_input();

  void write_exchange(Outbox& out, std::size_t budget);
  void write_interim(std::string& text);
  void write_head(std::string& text);
  void write_body(std::string& text, Outbox& out, std::size_t budget);
  bool can_go_on() const;
  void complete();
  void next();
  void close();
  void release();

  void tick_body(Millis now, Millis passed);
  bool drips(Millis now) const;
  bool input_waits() const;
  bool draining() const { return draining_ || host_.draining; }
  std::uint64_t read_limit() const { return host_.limits.read_buffer > 0 ? host_.limits.read_buffer : UINT64_MAX; }
  void touch() { host_.dirty.push(dirty_); }

  Host& host_;
  DirtyHook& dirty_;
  const Peer& peer_;
  RequestParser parser_;
  Buffer pending_;
  Ref<Exchange> exchange_;
  RequestTerms terms_;  // of the request in hand
  std::string reply_;   // an answer of our own, the last
  Millis since_;        // when the idling or the head began
  Millis ticked_;
  Millis body_since_ = 0;       // when the body began, less the time it had to wait for us
  Millis progress_ = 0;         // when a part of it came last, likewise
  std::uint64_t received_ = 0;  // of the body
  std::uint64_t dropped_ = 0;   // of a body that nobody reads
  In in_ = In::idle;
  Continue continue_ = Continue::not_expected;
  Framing framing_ = Framing::none;
  bool head_written_ = false;
  bool go_on_ = false;   // the head that was written lets the connection go on
  bool cut_ = false;     // the answer ends where it is, incomplete
  bool served_ = false;  // a request has been answered
  bool eof_ = false;
  bool eof_ahead_ = false;
  bool draining_ = false;
  bool closing_ = false;
};

// --- input ---

Result<void> Http1Session::feed(std::string_view plain) {
  if (closing_ || in_ == In::shut) return {};
  if (in_ == In::done) {
    if (terms_.keep_alive) pending_.append(plain);  // RFC 9112 9.6: nothing counts after close
    return {};
  }
  const std::size_t used = parse(plain);
  if (in_ == In::shut) return fail(Fault::protocol, "the request was refused");
  if (terms_.keep_alive) pending_.append(plain.substr(used));
  return {};
}

// Parses up to the end of one request; returns how much was used.
std::size_t Http1Session::parse(std::string_view input) {
  const std::size_t size = input.size();
  while (begin_head(input) || in_ == In::head || in_ == In::body) {
    const RequestParser::Step step = parser_.next(input);
    input.remove_prefix(step.used);
    switch (step.event) {
      case RequestParser::Event::none: return size;
      case RequestParser::Event::head: on_head(); break;
      case RequestParser::Event::body: on_body(step.body); break;
      case RequestParser::Event::end: on_end(); break;
      case RequestParser::Event::bad: malformed(parser_.status()); break;
    }
  }
  return size - input.size();
}

bool Http1Session::begin_head(std::string_view input) {
  if (in_ != In::idle || input.empty()) return false;
  in_ = In::head;
  since_ = host_.clock.now();
  return true;
}

void Http1Session::on_head() {
  RequestHead head = parser_.take_head();
  const auto terms = read_terms(head);
  if (!terms) return malformed(terms.error());
  if (over(terms->length.value_or(0), host_.limits.request_body)) return refuse(413);
  if (host_.over_capacity()) {
    host_.notice(Notice::Level::warning, "Exceeded concurrency limit.");
    return refuse(503);
  }
  // WebSocket will be taken here: head.protocol says so to the application.
  if (terms->upgrade) host_.notice(Notice::Level::warning, "Unsupported upgrade request.");
  terms_ = *terms;
  in_ = In::body;
  continue_ = terms_.expects_continue ? Continue::expected : Continue::not_expected;
  body_since_ = progress_ = host_.clock.now();
  received_ = dropped_ = 0;
  exchange_ = make_ref<Exchange>(host_, *this, peer_, std::move(head));
  ++host_.total_requests;
  exchange_->signal(Event::request);
}

void Http1Session::on_body(std::string_view body) {
  received_ += body.size();
  progress_ = host_.clock.now();
  if (continue_ != Continue::sent) continue_ = Continue::not_expected;  // RFC 9110 10.1.1: it has come anyway
  if (!exchange_) {
    dropped_ += body.size();
    if (dropped_ > k_drain) close();
    return;
  }
  if (over(received_, host_.limits.request_body)) return refuse(413);
  exchange_->receive(body);
}

void Http1Session::on_end() {
  if (exchange_) {
    in_ = In::done;
    exchange_->receive_end();
    if (eof_ahead_) exchange_->end_input();
    return;
  }
  in_ = In::idle;  // the last of a body that nobody read
  since_ = host_.clock.now();
}

void Http1Session::malformed(int status) {
  host_.notice(Notice::Level::warning, "Invalid HTTP request received.");
  refuse(status);
}

// Ends the input. What has been answered, or is being answered, gets no second answer.
void Http1Session::refuse(int status) {
  const bool answered = in_ == In::body && !exchange_;
  in_ = In::shut;
  touch();
  if (exchange_ && exchange_->send_state() != Send::idle) return exchange_->end_input();
  close();
  if (!answered) append_answer(reply_, host_, status, parser_.is_head() ? Body::left_out : Body::sent);
}

void Http1Session::eof() {
  eof_ = true;
  finish_input();
  touch();
}

// A body that is still coming may yet come whole.
void Http1Session::eof_ahead() {
  eof_ahead_ = true;
  if (in_ == In::done) exchange_->end_input();
}

// RFC 9112 8: a body that was cut is never shown as complete.
void Http1Session::finish_input() {
  if (!exchange_) return close();
  if (in_ == In::body) in_ = In::shut;
  exchange_->end_input();
}

void Http1Session::gone() { close(); }

bool Http1Session::reading() const {
  if (closing_ || in_ == In::shut) return false;
  if (in_ == In::done) return pending_.size() < read_limit();  // so that the peer's end is seen
  return !exchange_ || exchange_->unread() < read_limit();
}

// --- what the exchange asks for ---

void Http1Session::consumed(Exchange& exchange, std::size_t size) {
  const std::uint64_t left = exchange.unread();
  if (left < read_limit() && left + size >= read_limit()) touch();
}

void Http1Session::want_body(Exchange&) {
  if (continue_ != Continue::expected || in_ != In::body || head_written_) return;
  continue_ = Continue::wanted;
  touch();
}

// Before respond() there is nothing to cut; after it, what was written so far is sent, without an end.
void Http1Session::abandon(Exchange& exchange, Fault) {
  if (exchange.send_state() == Send::done) return;
  touch();
  if (exchange.send_state() == Send::idle) return close();
  in_ = In::shut;
  cut_ = true;
}

// --- output ---

void Http1Session::fill(Outbox& out, std::size_t budget) {
  if (exchange_) write_exchange(out, budget);
  if (reply_.empty()) return;
  out.append(reply_);
  reply_.clear();
}

bool Http1Session::pending() const {
  if (!reply_.empty()) return true;
  if (!exchange_) return false;
  if (cut_ || !exchange_->out().empty() || exchange_->send_state() == Send::done) return true;
  if (head_written_) return false;
  return continue_ == Continue::wanted || !exchange_->informational().empty() || exchange_->send_state() != Send::idle;
}

void Http1Session::write_exchange(Outbox& out, std::size_t budget) {
  std::string text;
  if (!head_written_) {
    write_interim(text);
    if (exchange_->send_state() == Send::idle) return out.append(text);
    write_head(text);
  }
  write_body(text, out, budget);
  exchange_->pulled();
  if (!exchange_->out().empty()) return out.append(text);
  const bool ended = !cut_ && exchange_->send_state() == Send::done;
  if (ended && framing_ == Framing::chunked) append_last_chunk(text, exchange_->trailers());
  out.append(text);
  if (ended) return complete();
  if (cut_) close();
}

void Http1Session::write_interim(std::string& text) {
  if (continue_ == Continue::wanted) {
    continue_ = Continue::sent;
    text.append("HTTP/1.1 100 Continue\r\n\r\n");
  }
  for (const ResponseHead& head : exchange_->informational()) append_interim(text, head);
  exchange_->informational().clear();
}

void Http1Session::write_head(std::string& text) {
  const ResponseHead& head = exchange_->response();
  const Version version = exchange_->request().version;
  framing_ = framing_of(exchange_->request(), head);
  go_on_ = can_go_on();
  head_written_ = true;
  text.reserve(256 + head.headers.octets() + 4 * head.headers.size());
  const After on = version == Version::http10 ? After::go_on_said : After::go_on;
  append_head(text, host_, head, framing_, go_on_ ? on : After::close);
}

// Whether the connection can be used again after this answer.
bool Http1Session::can_go_on() const {
  if (!terms_.keep_alive || draining() || in_ == In::shut || cut_) return false;
  if (framing_ == Framing::close || exchange_->response().status < 200) return false;
  if (says_close(exchange_->response().headers)) return false;
  if (in_ != In::body) return true;
  // RFC 9110 10.1.1: the client may or may not send the body that it announced.
  if (continue_ == Continue::expected || continue_ == Continue::wanted) return false;
  // The application is through without the body: throwing the rest away must be known to be cheap, since a close that
  // was not announced can cost the next request.
  return exchange_->send_state() != Send::done || (terms_.length && *terms_.length - received_ <= k_drain);
}

void Http1Session::write_body(std::string& text, Outbox& out, std::size_t budget) {
  Outbox& body = exchange_->out();
  if (framing_ == Framing::none) body.clear();
  const std::uint64_t size = std::min<std::uint64_t>(body.size(), budget);
  if (size == 0) return;
  if (framing_ == Framing::chunked) append_chunk_size(text, size);
  out.append(text);
  body.move_to(out, size);
  text.assign(framing_ == Framing::chunked ? "\r\n" : "");
}

// The answer is written whole.
void Http1Session::complete() {
  const bool go_on = go_on_ && !draining();
  release();
  served_ = true;
  if (!go_on || in_ == In::shut) return close();
  if (in_ == In::body) return;  // what is left of it is thrown away as it comes
  next();
}

void Http1Session::next() {
  in_ = In::idle;
  since_ = host_.clock.now();
  if (!pending_.empty()) pending_.drain(parse(pending_.view()));
  if (in_ == In::done && !terms_.keep_alive) pending_.clear();
  if (eof_) finish_input();
}

void Http1Session::drain() {
  draining_ = true;
  touch();
}

bool Http1Session::finished() const {
  if (exchange_ || !reply_.empty()) return false;
  return closing_ || (draining() && in_ == In::idle);
}

// Nothing more is read, nothing more will be answered.
void Http1Session::close() {
  release();
  in_ = In::shut;
  closing_ = true;
  pending_.clear();
}

// The exchange may outlive us in the application's hands. One that never got there goes unseen.
void Http1Session::release() {
  if (!exchange_) return;
  const Ref<Exchange> exchange = std::move(exchange_);
  head_written_ = cut_ = false;
  exchange->detach_wire();
}

// --- time ---

Result<void> Http1Session::tick(Millis now) {
  const Limits& limits = host_.limits;
  const Millis passed = now - std::min(now, std::exchange(ticked_, now));
  if (in_ == In::body) {
    tick_body(now, passed);
  } else if (in_ == In::head && expired(since_, now, limits.timeout_request_header)) {
    refuse(408);
  } else if (in_ == In::idle && expired(since_, now, served_ ? limits.timeout_keep_alive : limits.timeout_first_byte)) {
    close();
    touch();
  }
  return {};
}

void Http1Session::tick_body(Millis now, Millis passed) {
  if (input_waits()) {
    progress_ += passed;
    body_since_ += passed;
    return;
  }
  const bool stalls = !terms_.patient && expired(progress_, now, host_.limits.timeout_request_body);
  if (stalls || drips(now)) refuse(408);
}

bool Http1Session::drips(Millis now) const {
  if (!terms_.length || now < body_since_ + k_rate_grace) return false;
  return received_ * 1000 < host_.limits.min_body_rate * (now - body_since_);
}

// The peer waits for us, not we for it.
bool Http1Session::input_waits() const {
  return !reading() || continue_ == Continue::expected || continue_ == Continue::wanted;
}

}  // namespace

std::unique_ptr<Session> make_http1(Host& host, DirtyHook& dirty, const Peer& peer) {
  return std::make_unique<Http1Session>(host, dirty, peer);
}

}  // namespace tricorn
