#include "base/clock.h"

#include <array>
#include <cstdio>
#include <ctime>

namespace tricorn {
namespace {

timespec read(clockid_t id) {
  timespec at{};
  clock_gettime(id, &at);
  return at;
}

std::string render(std::time_t second) {
  // strftime would follow the locale.
  static constexpr std::array days{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm utc{};
  gmtime_r(&second, &utc);
  std::array<char, 64> text{};
  const int size = std::snprintf(text.data(), text.size(), "%s, %02d %s %04d %02d:%02d:%02d GMT",
                                 days[static_cast<std::size_t>(utc.tm_wday)], utc.tm_mday,
                                 months[static_cast<std::size_t>(utc.tm_mon)], utc.tm_year + 1900, utc.tm_hour,
                                 utc.tm_min, utc.tm_sec);
  return {text.data(), static_cast<std::size_t>(size)};
}

}  // namespace

void Clock::tick() {
  const timespec mono = read(CLOCK_MONOTONIC_COARSE);
  now_ = static_cast<Millis>(mono.tv_sec) * 1000 + static_cast<Millis>(mono.tv_nsec) / 1'000'000;
  const timespec wall = read(CLOCK_REALTIME_COARSE);
  if (wall.tv_sec == second_) return;
  second_ = wall.tv_sec;
  date_ = render(wall.tv_sec);
}

}  // namespace tricorn
