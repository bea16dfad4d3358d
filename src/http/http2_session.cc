#include "http/http2_session.h"

#include "base/text.h"

namespace tricorn {
namespace {

constexpr std::uint32_t k_last_streams = 1u << 30;  // ids run out at 2^31: leave in time (RFC 9113 5.1.1)
constexpr std::string_view k_bad_request = "Invalid HTTP request received.";

Fault fault_of(Http2Error code) { return code == Http2Error::enhance_your_calm ? Fault::flood : Fault::protocol; }

}  // namespace

Http2Session::Http2Session(Host& host, DirtyHook& dirty, const Peer& peer)
    : host_(host),
      dirty_(dirty),
      peer_(peer),
      guard_(host.limits),
      builder_(host.limits),
      codec_(*this, host.limits),
      opened_at_(host.clock.now()),
      ticked_at_(opened_at_),
      active_at_(opened_at_) {
  if (host.draining) drain();
  touch();
}

Http2Session::~Http2Session() {
  while (Http2Stream* stream = open_.pop()) delete stream;
}

// Every change that may give fill() work.
void Http2Session::touch() {
  if (pending()) host_.dirty.push(dirty_);
}

void Http2Session::push(Http2Stream& stream) {
  pending_.push(stream);
  touch();
}

// --- octets in ---

Result<void> Http2Session::feed(std::string_view plain) {
  if (error_) return std::unexpected{*error_};
  scanner_.restart();
  std::size_t given = 0;
  for (std::size_t at = 0; at < plain.size();) {
    if (!scanner_.next(plain, at)) continue;
    const std::size_t start = scanner_.start();
    if (guard_.asks(scanner_.frame()) && start > given) {
      if (auto ok = give(plain.substr(given, start - given)); !ok) return ok;
      given = start;
    }
    if (auto bad = verdict(scanner_.frame())) {
      if (auto ok = give(plain.substr(given, start - given)); !ok) return ok;
      return terminate(bad->code, fault_of(bad->code), bad->why);
    }
  }
  return give(plain.substr(given));
}

std::optional<Verdict> Http2Session::verdict(const Frame& frame) {
  // RFC 9113 6.9.2: nghttp2 resets the streams, where the connection has to end.
  if (frame.type == FrameType::settings && overflows(frame))
    return Verdict{Http2Error::flow_control_error, "SETTINGS overflow a window"};
  return guard_.judge(frame, known(frame), now());
}

Known Http2Session::known(const Frame& frame) const {
  if (!guard_.asks(frame)) return Known::nothing;
  const Http2Stream* stream = codec_.find(frame.stream);
  if (!stream) return Known::nothing;
  return stream->sent ? Known::answered : Known::open;
}

bool Http2Session::overflows(const Frame& settings) const {
  const std::int64_t wanted = settings.has(FrameFlag::ack) ? -1 : settings.initial_window();
  const std::int64_t grown = wanted - codec_.initial_send_window();
  if (wanted < 0 || grown <= 0) return false;
  bool over = false;
  const_cast<List<Http2Stream, Open>&>(open_).each(
      [&](const Http2Stream& stream) { over = over || codec_.send_window(stream.id) + grown > 0x7fffffff; });
  return over;
}

Result<void> Http2Session::give(std::string_view octets) {
  auto ok = codec_.receive(octets);
  if (error_) return std::unexpected{*error_};  // a callback has ended the connection
  if (!ok) return terminate(Http2Error::protocol_error, ok.error().fault, ok.error().what);
  const std::size_t most = host_.limits.h2_max_queued_acks;
  if (most > 0 && codec_.queued() > most)
    return terminate(Http2Error::enhance_your_calm, Fault::flood, "too many frames to answer");
  touch();
  return {};
}

std::unexpected<Error> Http2Session::terminate(Http2Error code, Fault fault, std::string_view why) {
  if (!error_) {
    error_ = Error{fault, std::string{why}};
    codec_.terminate(code);
    touch();
  }
  return std::unexpected{*error_};
}

// Acks and resets that the peer does not read must not pile up.
bool Http2Session::reading() const {
  const std::size_t most = host_.limits.h2_max_queued_acks;
  return !error_ && !broken_ && (most == 0 || codec_.queued() < most / 2 + 1);
}

// --- requests ---

Http2Stream* Http2Session::begin_request(std::uint32_t id) {
  builder_.begin(RequestBuilder::Part::head);
  block_ = nullptr;
  if (id >= k_last_streams) drain();
  const std::size_t most = host_.limits.h2_max_concurrent_streams;
  if (most > 0 && open_count_ >= most) {
    codec_.reset(id, Http2Error::refused_stream);  // RFC 9113 5.1.2
    return nullptr;
  }
  block_ = new Http2Stream{id};
  open_.push(*block_);
  ++open_count_;
  return block_;
}

void Http2Session::begin_trailers(Http2Stream* stream) {
  builder_.begin(RequestBuilder::Part::trailers);
  block_ = stream;
}

void Http2Session::field(std::string_view name, std::string_view value) {
  if (!block_) return;
  if (builder_.field(name, value) == RequestBuilder::Size::absurd)
    terminate(Http2Error::enhance_your_calm, Fault::too_large, "a header block many times over the limit");
}

void Http2Session::head_complete(Http2Stream& stream) {
  stream.body_at = stream.moved_at = active_at_ = now();
  stream.declared = builder_.content_length();
  stream.continue_wanted = builder_.expects_continue();
  auto head = builder_.finish();
  if (!head) {
    malformed();
    return refuse(stream, head.error());
  }
  if (host_.over_capacity()) return refuse(stream, 503);
  const std::uint64_t most = host_.limits.request_body;
  if (most > 0 && stream.declared.value_or(0) > most) return refuse(stream, 413);
  start(stream, std::move(*head));
}

void Http2Session::start(Http2Stream& stream, RequestHead head) {
  ++host_.total_requests;
  stream.exchange = make_ref<Exchange>(host_, *this, peer_, std::move(head));
  stream.exchange->carry(stream);
  stream.exchange->signal(Event::request);
}

// Answers in the application's place; what the application may have begun on it loses its wire.
void Http2Session::refuse(Http2Stream& stream, int status) {
  std::string method{builder_.method()};
  stream.refused = true;
  if (stream.exchange) {
    method = stream.exchange->request().method;
    stream.exchange->detach_wire();
  }
  RequestHead head{.method = std::move(method), .target = {}, .protocol = {}, .version = Version::http2, .headers = {}};
  stream.exchange = make_ref<Exchange>(host_, *this, peer_, std::move(head));
  stream.exchange->carry(stream);
  stream.exchange->leave();  // nobody reads the body
  const std::string_view text = reason_phrase(status);
  (void)stream.exchange->respond(plain_head(status, text));
  (void)stream.exchange->write(text);
  (void)stream.exchange->finish();
}

void Http2Session::malformed() { host_.notice(Notice::Level::warning, k_bad_request); }

void Http2Session::body(Http2Stream& stream, std::string_view bytes) {
  if (!stream.exchange || stream.doom) return;
  stream.received += bytes.size();
  stream.body_at = active_at_ = now();
  const std::uint64_t most = host_.limits.request_body;
  if (most > 0 && stream.received > most && !stream.refused) {
    if (stream.exchange->send_state() == Send::idle) refuse(stream, 413);
    else if (stream.exchange->call()) return drop(stream, Http2Error::cancel);
  }
  stream.exchange->receive(bytes);
  if (!stream.sent || stream.exchange->call()) return;
  stream.surplus += bytes.size();
  if (stream.surplus > k_surplus) drop(stream, Http2Error::no_error);  // RFC 9113 8.1
}

void Http2Session::end(Http2Stream& stream) {
  stream.ended = true;
  if (stream.exchange) stream.exchange->receive_end();
}

void Http2Session::drop(Http2Stream& stream, Http2Error code) {
  codec_.reset(stream.id, code);
  if (stream.exchange) stream.exchange->detach_wire();
  touch();
}

// Both sides are done, or one has reset it. An exchange that no application has seen yet ends here, unseen.
void Http2Session::closed(Http2Stream& stream) {
  const std::unique_ptr<Http2Stream> last{&stream};
  if (stream.ended) guard_.ended(stream.id);
  if (block_ == &stream) block_ = nullptr;
  --open_count_;
  if (stream.exchange) stream.exchange->detach_wire();
}

// --- the application's side ---

void Http2Session::wake(Exchange& exchange) { push(stream_of(exchange)); }

void Http2Session::consumed(Exchange& exchange, std::size_t size) {
  Http2Stream& stream = stream_of(exchange);
  if (stream.ended) return;  // nothing more comes: no window to open
  stream.body_at = now();
  codec_.consume_stream(stream.id, size);
  touch();
}

void Http2Session::want_body(Exchange& exchange) {
  Http2Stream& stream = stream_of(exchange);
  if (!stream.continue_wanted || stream.answered || stream.received > 0) return;
  stream.continue_wanted = false;
  stream.continue_due = true;
  push(stream);
}

void Http2Session::abandon(Exchange& exchange, Fault fault) {
  Http2Stream& stream = stream_of(exchange);
  stream.doom = fault == Fault::gone ? Http2Error::cancel : Http2Error::internal_error;
  push(stream);
}

// --- the end ---

void Http2Session::eof() {
  eof_ = true;
  open_.each([](Http2Stream& stream) {
    if (stream.exchange) stream.exchange->end_input();
  });
  drop_stranded();
}

// A body that is still coming may yet come whole.
void Http2Session::eof_ahead() {
  open_.each([](Http2Stream& stream) {
    if (stream.exchange && stream.ended) stream.exchange->end_input();
  });
}

// Without input no window opens again: an answer that waits for one would wait for ever, its send() with it.
void Http2Session::drop_stranded() {
  if (!eof_ || pending()) return;  // what can move goes first
  open_.each([&](Http2Stream& stream) {
    if (stranded(stream)) drop(stream, Http2Error::cancel);
  });
}

bool Http2Session::stranded(const Http2Stream& stream) const {
  if (!stream.exchange || stream.exchange->gone() || !owes_octets(stream)) return false;
  return codec_.send_window(stream.id) <= 0 || codec_.connection_send_window() <= 0;
}

void Http2Session::gone() {
  broken_ = true;
  open_.each([](Http2Stream& stream) {
    if (stream.exchange) stream.exchange->detach_wire();
    stream.exchange.reset();
  });
}

void Http2Session::drain() {
  if (drain_ != Drain::no) return;
  drain_ = Drain::announced;
  drain_at_ = now();
  codec_.shutdown_notice();
  codec_.ping();
  guard_.sent_ping();
  touch();
}

void Http2Session::pong() {
  if (drain_ == Drain::announced) last_goaway();
}

void Http2Session::last_goaway() {
  drain_ = Drain::last;
  codec_.goaway();
  touch();
}

bool Http2Session::finished() const {
  if (broken_ || codec_.over()) return true;
  return eof_ && open_.empty() && !codec_.wants_write();
}

std::unique_ptr<Session> make_http2(Host& host, DirtyHook& dirty, const Peer& peer) {
  return std::make_unique<Http2Session>(host, dirty, peer);
}

}  // namespace tricorn
