// The listeners and connections of one application on one Loop, and the four lists they are in.
// Owns Host, limits and router; decides who is accepted, who is shed, and when all is drained.
// Destroying it closes everything at once: every exchange in flight is told that its wire is gone.
//
// The App (and whatever TlsContext is listened with) outlives the Server, the Loop too.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/list.h"
#include "http/host.h"
#include "http/router.h"
#include "net/loop.h"
#include "net/protocols.h"
#include "net/timer.h"

namespace tricorn {

struct Open;
class Connection;
class Listener;
class TlsContext;

class Server {
 public:
  Server(Loop& loop, App& otherwise, Limits limits = {});
  ~Server();

  Host& host() { return host_; }  // headers, server_header, date_header: set them before listen()
  const Host& host() const { return host_; }
  Router& router() { return router_; }
  const Limits& limits() const { return limits_; }
  Loop& loop() const { return loop_; }

  // Accepts on a bound, listening stream socket, which stays the caller's: open until stop_listening().
  Result<void> listen(int fd, Protocols protocols = {}, const TlsContext* tls = nullptr);
  void stop_listening();
  // No new requests: idle connections close, busy ones after their answers. Idempotent.
  void drain();
  // Closes everything at once and leaves the loop. Idempotent, and the end: nothing works afterwards.
  void close();

  bool draining() const { return host_.draining; }
  std::uint64_t connections() const { return host_.connections; }
  std::uint64_t requests() const { return host_.requests; }

  // Both are called from dispatch(). `drained`: once, after drain(), when no connection and no request is left.
  void on_notice(std::move_only_function<void(const Notice&)> hook) { on_notice_ = std::move(hook); }
  void on_drained(std::move_only_function<void()> hook) { on_drained_ = std::move(hook); }

  // --- the phases, for Loop ---
  void flush();
  void advance();
  void dispatch();
  bool dirty() const { return !dirty_.empty(); }
  bool ready() const { return !ready_.empty() || !host_.notices.empty() || drained(); }

  // --- for listeners and connections ---
  // Whether one more may come in. At the limit the longest idle connection makes room; if there is none, accepting
  // pauses until one closes.
  bool admit();
  bool full() const { return limits_.connections > 0 && host_.connections >= limits_.connections; }
  // Out of descriptors or memory: makes room likewise, else pauses, tries again soon and returns true.
  bool starved(int error_number);
  void accepted(int fd, const Listener& listener);
  void active(Connection& connection);  // it has read something: last to be shed
  void closed();
  void mark_dirty(DirtyHook& hook) { dirty_.push(hook); }

 private:
  bool drained() const { return host_.draining && on_drained_ && connections() == 0 && requests() == 0; }
  bool shed();
  void pause();
  void resume();
  void sweep();
  void hand_out_notices();

  Loop& loop_;
  Limits limits_;
  Router router_;
  List<Exchange, Ready> ready_;
  List<DirtyHook, Dirty> dirty_;
  List<Connection, Open> open_;  // the longest idle in front; those that close are libuv's until it lets them go
  Host host_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::optional<Timer> sweeper_;  // runs while there are connections
  std::optional<Timer> retry_;    // runs while accepting is paused for want of descriptors
  std::move_only_function<void(const Notice&)> on_notice_;
  std::move_only_function<void()> on_drained_;
  bool paused_ = false;
  Millis starved_at_ = 0;  // when that was last said
  bool closed_ = false;
};

}  // namespace tricorn
