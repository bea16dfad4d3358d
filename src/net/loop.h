// One libuv loop and the servers on it: the tick of flush, I/O and dispatch.
// Owns the uv loop and the scratch memory of one read. Knows nothing of Python: the caller releases the GIL around
// `poll` and `flush` and holds it for `dispatch`. All methods but `wake` belong to the loop thread.
//
// Invariant: watchers are armed only inside uv_run, so whoever runs this loop under another one comes back after
// next_timeout(), and when backend_fd() is readable or on_dirty was called.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

struct uv_loop_s;

namespace tricorn {

class Server;

class Loop {
 public:
  static Result<std::unique_ptr<Loop>> make();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Watches a foreign selector's descriptor (readable), so that poll() also returns for it. Once.
  Result<void> watch(int fd);
  // Flushes, waits for I/O at most so many seconds (nothing: without end), advances what became ready. Does not wait
  // while there is something to dispatch. Returns whether the watched descriptor is readable.
  bool poll(std::optional<double> timeout_seconds);
  // Whether dispatch() has something to do.
  bool ready() const;
  // Enters every application that has a ready exchange, and hands out notices.
  void dispatch();
  // Sends what is due. What a socket does not take waits for it; what is over a connection's share waits for poll().
  void flush();
  // Seconds until this loop needs to run again by itself; nothing: only when backend_fd() is readable.
  std::optional<double> next_timeout() const;
  int backend_fd() const;

  // `hook` is called when there is something to flush or dispatch and no phase is running; once until the next phase.
  void on_dirty(std::move_only_function<void()> hook) { on_dirty_ = std::move(hook); }
  // For whoever used an exchange or a server outside of dispatch: calls the hook when it is due.
  void touched();
  // Makes poll() return soon. From any thread, between make() and close().
  void wake();
  // Closes the servers and every handle. Idempotent. Not from inside a phase.
  void close();

  // --- for net/ ---
  uv_loop_s* uv() const;
  void attach(Server& server);
  void detach(Server& server);
  const Clock& clock() const { return clock_; }
  // Reads the clock if time has passed since: first thing in every I/O callback, since the wait may have been long.
  void tick();
  static constexpr std::size_t k_read = 64 * 1024;
  std::span<char> read_buffer() const;
  std::span<char> plain_buffer() const;  // holds whatever one read decrypts to

 private:
  struct Handles;
  class Phase;

  Loop();
  void start_timer(double seconds);
  void run_once();
  void run_now();
  void flush_servers();
  bool corked_long_enough();
  bool dirty() const;
  bool settled() const;

  std::unique_ptr<Handles> handles_;  // empty once closed
  Clock clock_;
  std::vector<Server*> servers_;  // null: has left
  std::move_only_function<void()> on_dirty_;
  std::uint64_t ticked_ = 0;  // libuv's time when the clock was read
  bool in_phase_ = false;
  bool told_ = false;   // on_dirty was called and no phase has run since
  bool fired_ = false;  // the watched descriptor was readable
  static constexpr std::uint64_t k_cork_ns = 1'000'000;
  std::uint64_t flushed_at_ = 0;  // when output was last sent although Python was busy
  bool woken_ = false;            // the time-out passed or wake() was called
};

std::string loop_library();  // name and version, as linked

}  // namespace tricorn
