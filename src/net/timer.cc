#include "net/timer.h"

#include <uv.h>

#include "net/loop.h"

namespace tricorn {

Timer::Timer(Loop& loop, std::move_only_function<void()> fire)
    : loop_(loop), fire_(std::move(fire)), handle_(new uv_timer_t) {
  uv_timer_init(loop.uv(), handle_);
  handle_->data = this;
}

Timer::~Timer() {
  uv_close(reinterpret_cast<uv_handle_t*>(handle_),
           [](uv_handle_t* handle) { delete reinterpret_cast<uv_timer_t*>(handle); });
}

void Timer::once(Millis after) { start(after, 0); }

void Timer::every(Millis period) { start(period, period); }

void Timer::stop() { uv_timer_stop(handle_); }

bool Timer::running() const { return uv_is_active(reinterpret_cast<uv_handle_t*>(handle_)) != 0; }

void Timer::start(Millis after, Millis period) {
  uv_update_time(loop_.uv());  // libuv counts from when it last looked, which may be long ago
  uv_timer_start(
      handle_,
      [](uv_timer_t* handle) {
        auto& timer = *static_cast<Timer*>(handle->data);
        timer.loop_.tick();
        timer.fire_();
      },
      after, period);
}

}  // namespace tricorn
