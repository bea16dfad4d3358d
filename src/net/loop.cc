#include "net/loop.h"

#include <uv.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "net/server.h"

namespace tricorn {
namespace {

constexpr std::size_t k_record = 16 * 1024 + 512;  // a TLS record that an earlier read began may end in this one

template <class Handle>
uv_handle_t* base(Handle& handle) {
  return reinterpret_cast<uv_handle_t*>(&handle);
}

std::string reason(int code) { return uv_strerror(code); }

// A server may join or leave while it goes on: by index, and over the gaps.
template <class Visit>
void each(const std::vector<Server*>& servers, Visit&& visit) {
  for (std::size_t i = 0; i < servers.size(); ++i)
    if (servers[i]) visit(*servers[i]);
}

template <class Test>
bool any(const std::vector<Server*>& servers, Test&& test) {
  return std::ranges::any_of(servers, [&](Server* server) { return server && test(*server); });
}

// Rounded up: waking early would make the caller wait again.
std::uint64_t to_millis(double seconds) { return static_cast<std::uint64_t>(std::ceil(std::min(seconds, 1e9) * 1000)); }

}  // namespace

struct Loop::Handles {
  uv_loop_t loop;
  uv_async_t wake;
  uv_timer_t timer;
  uv_poll_t watch;
  bool watching = false;
  std::array<char, k_read> read;
  std::array<char, k_read + k_record> plain;
};

// While one of these lives, output that appears will be flushed anyway: nobody has to be told.
class Loop::Phase {
 public:
  explicit Phase(Loop& loop) : loop_(loop) {
    loop.in_phase_ = true;
    loop.told_ = false;
    loop.clock_.tick();
  }
  ~Phase() { loop_.in_phase_ = false; }

 private:
  Loop& loop_;
};

Loop::Loop() = default;

Result<std::unique_ptr<Loop>> Loop::make() {
  std::unique_ptr<Loop> loop{new Loop};
  auto handles = std::make_unique<Handles>();
  if (int code = uv_loop_init(&handles->loop); code != 0)
    return fail(Fault::os, "cannot make an event loop: " + reason(code));
  handles->loop.data = loop.get();
  const auto woken = [](uv_async_t* handle) { static_cast<Loop*>(handle->loop->data)->woken_ = true; };
  if (int code = uv_async_init(&handles->loop, &handles->wake, woken); code != 0) {
    uv_loop_close(&handles->loop);
    return fail(Fault::os, "cannot make an event loop: " + reason(code));
  }
  uv_timer_init(&handles->loop, &handles->timer);
  loop->handles_ = std::move(handles);
  return loop;
}

Loop::~Loop() { close(); }

Result<void> Loop::watch(int fd) {
  if (!handles_ || handles_->watching) return fail(Fault::state, "a descriptor is watched already");
  if (int code = uv_poll_init(uv(), &handles_->watch, fd); code != 0)
    return fail(Fault::os, "cannot watch the selector: " + reason(code));
  handles_->watching = true;
  const auto fired = [](uv_poll_t* handle, int, int) { static_cast<Loop*>(handle->loop->data)->fired_ = true; };
  if (int code = uv_poll_start(&handles_->watch, UV_READABLE, fired); code != 0)
    return fail(Fault::os, "cannot watch the selector: " + reason(code));
  return {};
}

bool Loop::poll(std::optional<double> timeout) {
  if (!handles_) return false;
  Phase phase{*this};
  woken_ = false;
  const bool busy = timeout && !(*timeout > 0);
  if (!busy || corked_long_enough()) flush_servers();
  if (busy) {
    run_now();
  } else {
    if (timeout) start_timer(*timeout);
    // What needs no Python (handshakes, acknowledgements, the rest of a large answer) does not go back to it.
    for (run_once(); !settled(); run_once()) flush_servers();
    if (timeout) uv_timer_stop(&handles_->timer);
  }
  return std::exchange(fired_, false);
}

// While Python has more to run at once, output gathers for a moment: a stream of small messages becomes a few DATA
// frames, not one each. Peers count tiny frames as abuse, and every flush is a system call.
bool Loop::corked_long_enough() {
  const std::uint64_t now = uv_hrtime();
  if (now - flushed_at_ < k_cork_ns) return false;
  flushed_at_ = now;
  return true;
}

// Whether poll() has something to come back with; otherwise there is only output to send.
bool Loop::settled() const { return fired_ || woken_ || !dirty() || ready(); }

void Loop::start_timer(double seconds) {
  uv_update_time(uv());  // libuv counts from when it last looked
  const auto passed = [](uv_timer_t* handle) { static_cast<Loop*>(handle->loop->data)->woken_ = true; };
  uv_timer_start(&handles_->timer, passed, to_millis(seconds), 0);
}

void Loop::run_once() {
  if (ready() || dirty()) return run_now();
  uv_run(uv(), UV_RUN_ONCE);
  tick();
  each(servers_, [](Server& server) { server.advance(); });
}

void Loop::run_now() {
  uv_run(uv(), UV_RUN_NOWAIT);
  tick();
  each(servers_, [](Server& server) { server.advance(); });
}

bool Loop::ready() const {
  return any(servers_, [](const Server& server) { return server.ready(); });
}

bool Loop::dirty() const {
  return any(servers_, [](const Server& server) { return server.dirty(); });
}

void Loop::dispatch() {
  if (!handles_) return;
  Phase phase{*this};
  each(servers_, [](Server& server) { server.dispatch(); });
}

void Loop::flush() {
  if (!handles_) return;
  Phase phase{*this};
  flush_servers();
}

void Loop::flush_servers() {
  each(servers_, [](Server& server) { server.flush(); });
}

std::optional<double> Loop::next_timeout() const {
  if (!handles_) return std::nullopt;
  if (dirty() || ready()) return 0.0;
  uv_update_time(uv());
  const int millis = uv_backend_timeout(uv());  // 0 also while a watcher is not armed
  if (millis < 0) return std::nullopt;
  return millis / 1000.0;
}

int Loop::backend_fd() const { return handles_ ? uv_backend_fd(uv()) : -1; }

void Loop::touched() {
  if (in_phase_ || told_ || !on_dirty_) return;
  if (next_timeout() != 0.0) return;
  told_ = true;
  on_dirty_();
}

void Loop::wake() { uv_async_send(&handles_->wake); }

void Loop::close() {
  if (!handles_) return;
  each(servers_, [](Server& server) { server.close(); });
  uv_close(base(handles_->wake), nullptr);
  uv_close(base(handles_->timer), nullptr);
  if (handles_->watching) uv_close(base(handles_->watch), nullptr);
  uv_run(uv(), UV_RUN_DEFAULT);
  uv_loop_close(uv());
  handles_.reset();
}

uv_loop_s* Loop::uv() const { return &handles_->loop; }

void Loop::attach(Server& server) {
  const auto free = std::find(servers_.begin(), servers_.end(), nullptr);
  if (free == servers_.end()) servers_.push_back(&server);
  else *free = &server;
}

void Loop::detach(Server& server) {
  std::replace(servers_.begin(), servers_.end(), &server, static_cast<Server*>(nullptr));
}

void Loop::tick() {
  const std::uint64_t now = uv_now(uv());
  if (now == ticked_) return;
  ticked_ = now;
  clock_.tick();
}

std::span<char> Loop::read_buffer() const { return handles_->read; }

std::span<char> Loop::plain_buffer() const { return handles_->plain; }

std::string loop_library() { return std::string{"libuv "} + uv_version_string(); }

}  // namespace tricorn
