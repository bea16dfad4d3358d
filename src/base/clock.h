// Time as the loop sees it: read once per turn, not once per use.
// `now` is monotonic milliseconds; `date` is the HTTP Date field value (RFC 9110 5.6.7), rendered once a second.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tricorn {

using Millis = std::uint64_t;

class Clock {
 public:
  Clock() { tick(); }
  // Reads the clocks; called at the start of every phase.
  void tick();
  Millis now() const { return now_; }
  std::string_view date() const { return date_; }

 private:
  Millis now_ = 0;
  std::int64_t second_ = -1;
  std::string date_;
};

}  // namespace tricorn
