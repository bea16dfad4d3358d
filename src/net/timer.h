// A libuv timer that calls one function. The handle outlives this object until libuv lets go of it.
#pragma once

#include <functional>

#include "base/clock.h"

struct uv_timer_s;

namespace tricorn {

class Loop;

class Timer {
 public:
  Timer(Loop& loop, std::move_only_function<void()> fire);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void once(Millis after);
  void every(Millis period);
  void stop();
  bool running() const;

 private:
  void start(Millis after, Millis period);

  Loop& loop_;
  std::move_only_function<void()> fire_;
  uv_timer_s* handle_;
};

}  // namespace tricorn
