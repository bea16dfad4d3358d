// A header's value into both timeout readers: a duration that is not negative, or an error that names the value.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "rpc/timeout.h"

namespace {

using namespace tricorn::rpc;

void check(const Outcome<Timeout>& timeout, std::string_view value, std::size_t most) {
  if (!timeout) {
    if (timeout.error().code != Code::invalid_argument || timeout.error().message.empty()) std::abort();
    return;
  }
  if (!*timeout) {
    if (!value.empty()) std::abort();
    return;
  }
  if (**timeout < std::chrono::nanoseconds{0} || value.size() > most) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view value{reinterpret_cast<const char*>(data), size};
  check(connect_timeout(value), value, 10);
  check(grpc_timeout(value), value, 9);
  return 0;
}
