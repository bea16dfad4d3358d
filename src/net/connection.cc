#include "net/connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "net/listener.h"
#include "net/loop.h"
#include "net/server.h"
#include "net/socket.h"

namespace tricorn {
namespace {

constexpr std::size_t k_fill = 64 * 1024;        // of one connection's output in one flush
constexpr std::uint32_t k_discard = 256 * 1024;  // after our FIN
constexpr Millis k_linger = 2'000;
constexpr Millis k_grace = 250;  // a request may be on its way behind the handshake
constexpr std::string_view k_preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";  // RFC 9113 3.4
constexpr std::string_view k_plain_http =
    "HTTP/1.0 400 Bad Request\r\n"
    "content-type: text/plain; charset=utf-8\r\n"
    "connection: close\r\n\r\n"
    "This port speaks HTTPS.\n";

}  // namespace

Connection* Connection::make(Server& server, int fd, const Listener& listener) {
  auto* connection = new Connection{server, fd, listener};
  if (uv_poll_init(server.loop().uv(), &connection->poll_, fd) != 0) {
    delete connection;
    return nullptr;
  }
  connection->poll_.data = connection;
  connection->start();
  return connection;
}

Connection::Connection(Server& server, int fd, const Listener& listener)
    : server_(server),
      fd_(fd),
      protocols_(listener.protocols()),
      since_(server.loop().clock().now()),
      moved_(since_),
      heard_(since_),
      peer_(peer_of(fd)) {
  if (peer_.server_port >= 0) set_no_delay(fd);
  if (!listener.tls()) return;
  tls_.emplace(*listener.tls(), protocols_);
  peer_.secure = true;
}

Connection::~Connection() {
  if (stage_ != Stage::closed) ::close(fd_);
}

void Connection::start() {
  if (tls_) stage_ = Stage::handshake;
  else if (protocols_.http1 && protocols_.http2) stage_ = Stage::sniff;
  else open_session(protocols_.http2 ? Protocol::http2 : Protocol::http1);
  watch();
}

void Connection::open_session(Protocol protocol) {
  stage_ = Stage::open;
  session_ = make_session(protocol, server_.host(), *this, peer_);
  if (server_.draining()) session_->drain();
  keep_session_moving();
}

// --- the ways in and out ---

void Connection::on_io(uv_poll_t* handle, int status, int events) {
  auto& connection = *static_cast<Connection*>(handle->data);
  connection.server_.loop().tick();
  // libuv says EBADF for POLLERR, whatever the error was, and has stopped watching.
  if (status < 0) return connection.close(Error{Fault::gone, "the peer has reset the connection"});
  if (events & (UV_READABLE | UV_DISCONNECT)) connection.on_read(events);
  if (events & UV_WRITABLE && connection.stage_ != Stage::closed) connection.on_writable();
}

// Where an error ends. Memory may run out anywhere below: that costs this connection, not the server, and no
// exception may pass through libuv.
template <class Work>
void Connection::enter(Work&& work) noexcept {
  try {
    if (auto ok = work(); !ok) close(ok.error());
  } catch (const std::bad_alloc&) {
    close();
  }
}

void Connection::on_read(int events) {
  enter([&] { return read(events); });
}

void Connection::on_writable() {
  enter([&] { return push(); });
}

void Connection::flush() {
  if (stage_ == Stage::closed) return;
  enter([&] { return push(); });
}

void Connection::on_tick(Millis now) {
  enter([&] { return tick(now); });
}

Result<void> Connection::tick(Millis now) {
  if (hung_up()) return fail(Fault::gone, "the peer has closed the connection");
  if (!out_.empty()) look_for_progress(now);
  if (auto ok = overdue(now); !ok || !session_) return ok;
  if (auto ok = session_->tick(now); !ok) return ok;
  if (out_.empty()) keep_session_moving();
  return {};
}

void Connection::close(const Error& error) {
  if (error.fault == Fault::os) server_.host().notice(Notice::Level::warning, error.what);
  if (error.fault == Fault::timeout && !out_.empty()) forget_unsent(fd_);
  close();
}

void Connection::close() {
  if (stage_ == Stage::closed) return;
  stage_ = Stage::closed;
  drop_session();
  tls_.reset();
  out_.clear();
  DirtyHook::unlink();
  Hook<Open>::unlink();
  uv_close(reinterpret_cast<uv_handle_t*>(&poll_),
           [](uv_handle_t* handle) { delete static_cast<Connection*>(handle->data); });
  ::close(fd_);  // libuv has let go of it
  server_.closed();
}

void Connection::drain() {
  if (stage_ == Stage::handshake || stage_ == Stage::sniff) return close();
  if (!session_) return;
  session_->drain();
  server_.mark_dirty(*this);
}

bool Connection::idle(Millis now) const {
  if (now < heard_ + k_grace) return false;
  switch (stage_) {
    case Stage::handshake: return false;
    case Stage::sniff: return held_.empty();
    case Stage::open: return session_->idle() && out_.empty();
    case Stage::ending: return fin_sent_;
    case Stage::closed: return false;
  }
  return false;
}

// A slow reader empties the kernel's queue long before there is room for more of ours: that counts as progress.
void Connection::look_for_progress(Millis now) {
  const std::uint64_t queued = unacknowledged(fd_);
  if (queued < std::exchange(queued_, queued)) moved_ = now;
}

// Of a peer that has ended its side the kernel would report no news but the same again, so nothing is watched while
// there is nothing to write. That it has reset the connection meanwhile is asked for.
bool Connection::hung_up() const {
  if (interest_ != 0) return false;
  const Hangup found = hangup(fd_);
  return found == Hangup::reset || (found == Hangup::closed && peer_ended_);
}

Result<void> Connection::overdue(Millis now) const {
  const Limits& limits = server_.limits();
  const auto over = [now](Millis start, Millis limit) { return limit > 0 && now >= start + limit; };
  if (stage_ == Stage::handshake && over(since_, limits.timeout_tls_handshake))
    return fail(Fault::timeout, "the TLS handshake took too long");
  if (stage_ == Stage::sniff && over(since_, held_.empty() ? limits.timeout_first_byte : limits.timeout_request_header))
    return fail(Fault::timeout, "no request came");
  if (fin_sent_ && over(since_, k_linger)) return fail(Fault::timeout, "the peer did not close its side");
  if (!out_.empty() && over(moved_, limits.timeout_write)) return fail(Fault::timeout, "the peer does not read");
  return {};
}

// --- input ---

bool Connection::wants_input() const {
  if (peer_ended_) return false;
  return stage_ == Stage::open ? !deaf_ && session_->reading() : stage_ != Stage::closed;
}

Result<void> Connection::read(int events) {
  if (stage_ == Stage::ending) return discard();
  if (!wants_input()) return look_ahead(events);
  auto received = receive(fd_, server_.loop().read_buffer());  // once: the share of one tick
  if (!received) return std::unexpected{received.error()};
  if (received->kind == Received::Kind::nothing) return {};
  if (received->kind == Received::Kind::end) {
    peer_ended_ = true;
    return end_of_input();
  }
  heard_ = server_.loop().clock().now();
  server_.active(*this);
  return take(received->bytes);
}

// Reading is paused. A peer that has left is noticed all the same, also behind octets that are not wanted yet.
Result<void> Connection::look_ahead(int events) {
  auto there = peek(fd_);
  if (!there) return std::unexpected{there.error()};
  if (there->kind == Received::Kind::end && !peer_ended_) {
    peer_ended_ = true;
    return end_of_input();
  }
  if (events & UV_DISCONNECT && !left_) {
    left_ = true;  // the kernel would report it again and again
    if (!deaf_) session_->eof_ahead();
  }
  pause();
  return {};
}

Result<void> Connection::take(std::string_view bytes) {
  if (tls_) return take_cipher(bytes);
  if (stage_ == Stage::sniff) return sniff(bytes);
  feed(bytes);
  return {};
}

Result<void> Connection::take_cipher(std::string_view bytes) {
  const std::span<char> plain = server_.loop().plain_buffer();
  const auto size = tls_->open(bytes, plain, out_);
  if (!size) return refuse_tls();
  if (tls_->established() && !session_) {
    peer_.tls = &tls_->facts();
    const Protocol otherwise = protocols_.http1 ? Protocol::http1 : Protocol::http2;
    open_session(tls_->alpn().value_or(otherwise));
  }
  if (session_) feed({plain.data(), *size});
  if (tls_->ended())
    if (auto ok = end_of_input(); !ok) return ok;
  if (out_.empty()) return {};
  if (auto ok = send_out(); !ok) return ok;  // the handshake goes on at once
  watch();
  return {};
}

Result<void> Connection::sniff(std::string_view bytes) {
  const std::string_view rest = k_preface.substr(held_.size());
  const std::size_t n = std::min(rest.size(), bytes.size());
  const bool preface = rest.starts_with(bytes.substr(0, n));
  if (preface && n < rest.size()) {
    if (held_.empty()) since_ = server_.loop().clock().now();
    held_ += bytes;
    return {};
  }
  const std::string held = std::exchange(held_, {});
  open_session(preface ? Protocol::http2 : Protocol::http1);
  feed(held);
  feed(bytes);
  return {};
}

void Connection::feed(std::string_view plain) {
  if (deaf_ || plain.empty()) return;
  if (!session_->feed(plain)) deaf_ = true;  // what there is to say about it comes with fill()
  keep_session_moving();
}

Result<void> Connection::end_of_input() {
  if (!session_) return fail(Fault::gone, "the peer left before a request");
  if (!deaf_) session_->eof();
  deaf_ = true;
  keep_session_moving();
  watch();
  return {};
}

void Connection::keep_session_moving() {
  if (session_->pending() || session_->finished()) server_.mark_dirty(*this);
}

// The session is done: what the peer still sends must be read, or the kernel resets the connection and our last
// words with it (RFC 9112 9.6).
Result<void> Connection::discard() {
  auto received = receive(fd_, server_.loop().read_buffer());
  if (!received) return std::unexpected{received.error()};
  if (received->kind == Received::Kind::end) peer_ended_ = true;
  if (fin_sent_) discarded_ += static_cast<std::uint32_t>(received->bytes.size());
  if (fin_sent_ && (peer_ended_ || discarded_ > k_discard)) return fail(Fault::gone, "done");
  watch();
  return {};
}

bool Connection::nothing_unread() const {
  const auto there = peek(fd_);
  return there && there->kind == Received::Kind::nothing;
}

// --- output ---

Result<void> Connection::push() {
  if (stage_ == Stage::ending) return end();
  if (session_ && out_.empty())
    if (auto ok = fill(); !ok) return ok;
  const Quiet quiet = out_.empty() ? Quiet::yes : Quiet::no;
  if (auto ok = send_out(); !ok) return ok;
  if (session_ && out_.empty()) {
    if (session_->pending()) server_.mark_dirty(*this);  // the rest has its turn when the others had theirs
    else if (session_->finished()) return finish(quiet);
  }
  watch();
  return {};
}

Result<void> Connection::fill() {
  moved_ = server_.loop().clock().now();
  if (!tls_) {
    session_->fill(out_, k_fill);
    return {};
  }
  Outbox plain;
  session_->fill(plain, k_fill);
  return tls_->seal(plain, out_);
}

Result<void> Connection::send_out() {
  if (out_.empty()) return {};
  const auto sent = send(fd_, out_);
  if (!sent) return std::unexpected{sent.error()};
  if (*sent > 0) moved_ = server_.loop().clock().now();
  return {};
}

Result<void> Connection::finish(Quiet quiet) {
  drop_session();
  if (tls_) tls_->close_notify(out_);
  if (auto ok = send_out(); !ok) return ok;
  // Nothing said and nothing unread: there are no last words to protect.
  const bool at_once = quiet == Quiet::yes || server_.draining();
  if (peer_ended_ || (at_once && nothing_unread())) return fail(Fault::gone, "done");
  return end();
}

Result<void> Connection::refuse_tls() {
  if (tls_->plain_http()) out_.append(k_plain_http);
  drop_session();
  return end();
}

Result<void> Connection::end() {
  if (stage_ != Stage::ending) moved_ = server_.loop().clock().now();
  stage_ = Stage::ending;
  if (auto ok = send_out(); !ok) return ok;
  if (out_.empty() && !fin_sent_) {
    ::shutdown(fd_, SHUT_WR);
    fin_sent_ = true;
    since_ = server_.loop().clock().now();
    if (peer_ended_) return fail(Fault::gone, "done");
  }
  watch();
  return {};
}

void Connection::drop_session() {
  if (!session_) return;
  session_->gone();
  session_.reset();
}

// --- what libuv watches for ---

int Connection::wanted() const {
  int events = out_.empty() ? 0 : UV_WRITABLE;
  if (wants_input()) events |= UV_READABLE;
  else if (!left_ && !peer_ended_) events |= UV_DISCONNECT;
  return events;
}

// Changing a watcher costs system calls, so reading goes on being watched for while it is paused: until something
// comes (see look_ahead), which most often is after reading has been taken up again.
void Connection::watch() {
  int events = wanted();
  if (interest_ & UV_READABLE && !peer_ended_) events = (events | UV_READABLE) & ~UV_DISCONNECT;
  watch(events);
}

void Connection::pause() { watch(wanted()); }

void Connection::watch(int events) {
  if (events == interest_) return;
  interest_ = events;
  if (events == 0) uv_poll_stop(&poll_);
  else uv_poll_start(&poll_, events, on_io);
}

}  // namespace tricorn
