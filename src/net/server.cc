#include "net/server.h"

#include <unistd.h>

#include <cstring>

#include "net/connection.h"
#include "net/listener.h"

namespace tricorn {
namespace {
constexpr Millis k_sweep = 250;
constexpr Millis k_retry = 100;
constexpr Millis k_quiet = 10'000;  // between two lines about the same trouble

// Works through those that are ready now, since others become ready meanwhile. What an exception leaves over stays so.
template <class Work>
void each_ready(List<Exchange, Ready>& ready, Work&& work) {
  struct Snapshot {
    List<Exchange, Ready>& ready;
    List<Exchange, Ready> now{};
    ~Snapshot() { now.move_to(ready); }
  } snapshot{ready};
  ready.move_to(snapshot.now);
  while (Exchange* exchange = snapshot.now.pop()) {
    const Ref<Exchange> hold{exchange};
    work(*exchange);
  }
}
}  // namespace

Server::Server(Loop& loop, App& otherwise, Limits limits)
    : loop_(loop),
      limits_(limits),
      router_(otherwise),
      host_{.router = router_, .limits = limits_, .clock = loop.clock(), .ready = ready_, .dirty = dirty_} {
  sweeper_.emplace(loop, [this] { sweep(); });
  retry_.emplace(loop, [this] { resume(); });
  loop.attach(*this);
}

Server::~Server() {
  close();
  loop_.detach(*this);
}

Result<void> Server::listen(int fd, Protocols protocols, const TlsContext* tls) {
  if (closed_) return fail(Fault::state, "the server is closed");
  if (!protocols.http1 && !protocols.http2) return fail(Fault::value, "a listener needs a protocol");
  auto listener = std::make_unique<Listener>(*this, fd, protocols, tls);
  if (auto ok = listener->start(); !ok) return ok;
  listeners_.push_back(std::move(listener));
  loop_.touched();
  return {};
}

void Server::stop_listening() {
  listeners_.clear();
  paused_ = false;
  if (retry_) retry_->stop();
}

void Server::drain() {
  if (host_.draining) return;
  host_.draining = true;
  List<Connection, Open> now;
  open_.move_to(now);
  while (Connection* connection = now.pop()) {
    open_.push(*connection);
    connection->drain();
  }
  loop_.touched();
}

void Server::close() {
  if (closed_) return;
  closed_ = true;
  stop_listening();
  while (Connection* connection = open_.front()) connection->close();
  sweeper_.reset();
  retry_.reset();
  loop_.touched();
}

// --- the phases ---

void Server::flush() {
  List<DirtyHook, Dirty> now;  // what becomes dirty meanwhile waits for the next flush
  dirty_.move_to(now);
  while (DirtyHook* hook = now.pop()) static_cast<Connection*>(hook)->flush();
}

void Server::advance() {
  each_ready(ready_, [this](Exchange& exchange) {
    ready_.push(exchange);  // leaves again if the App needs nothing more
    exchange.app().advance(exchange);
  });
}

void Server::dispatch() {
  each_ready(ready_, [](Exchange& exchange) { exchange.app().dispatch(exchange); });
  hand_out_notices();
  if (drained()) std::exchange(on_drained_, nullptr)();
}

void Server::hand_out_notices() {
  if (host_.notices.empty()) return;
  auto notices = std::exchange(host_.notices, {});
  if (const auto dropped = std::exchange(host_.notices_dropped, 0); dropped > 0)
    notices.push_back({Notice::Level::warning, "and " + std::to_string(dropped) + " more lines like these"});
  for (const Notice& notice : notices)
    if (on_notice_) on_notice_(notice);
}

// --- who may come in ---

void Server::accepted(int fd, const Listener& listener) {
  Connection* connection = Connection::make(*this, fd, listener);
  if (!connection) return host_.notice(Notice::Level::error, "cannot watch a new connection");
  open_.push(*connection);
  ++host_.connections;
  if (!sweeper_->running()) sweeper_->every(k_sweep);
}

void Server::active(Connection& connection) {
  Hook<Open>& hook = connection;
  hook.unlink();
  open_.push(connection);
}

void Server::closed() {
  --host_.connections;
  if (host_.connections == 0 && sweeper_) sweeper_->stop();
  if (paused_) resume();
}

bool Server::admit() {
  if (!full() || shed()) return true;
  pause();
  return false;
}

bool Server::starved(int error_number) {
  if (shed()) return false;
  const Millis now = loop_.clock().now();
  if (starved_at_ == 0 || now >= starved_at_ + k_quiet) {
    host_.notice(Notice::Level::warning, std::string{"accepting is paused: "} + std::strerror(error_number));
    starved_at_ = now;
  }
  pause();
  retry_->once(k_retry);
  return true;
}

bool Server::shed() {
  const Millis now = loop_.clock().now();
  Connection* idle = open_.first([now](const Connection& connection) { return connection.idle(now); });
  if (idle) idle->close();
  return idle != nullptr;
}

void Server::pause() {
  paused_ = true;
  for (const auto& listener : listeners_) listener->pause();
}

void Server::resume() {
  if (!paused_) return;
  paused_ = false;
  for (const auto& listener : listeners_) listener->resume();
}

void Server::sweep() {
  const Millis now = loop_.clock().now();
  open_.each([now](Connection& connection) { connection.on_tick(now); });
  if (!retry_->running()) resume();  // one may have become idle
}

}  // namespace tricorn
