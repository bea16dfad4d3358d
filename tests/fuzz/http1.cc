// HTTP/1.1 octets into a session whose application echoes. The same input, whole and cut into pieces, must give the
// same requests and the same answers: where the network cuts may never change what a message means. Only which of two
// faults is answered may differ, that of the limit or that of the octets behind it.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "../unit/testing.h"

namespace {

using tricorn::Limits;
using tricorn::testing::World;

struct Outcome {
  std::string out;
  std::uint64_t requests = 0;
  std::string seen;  // what the application was shown whole

  bool operator==(const Outcome&) const = default;
};

Outcome run(std::string_view input, unsigned seed) {
  World world{tricorn::Protocol::http1};
  world.limits.request_line = 200;
  world.limits.header_size = 400;
  world.limits.header_count = 10;
  world.limits.chunk_ext = 50;
  world.limits.trailer_size = 50;
  world.limits.request_body = 300;
  world.open();
  while (!input.empty()) {
    std::size_t size = input.size();
    if (seed != 0) {
      seed = seed * 1'103'515'245 + 12'345;
      size = std::min<std::size_t>(size, 1 + (seed >> 16) % 17);
    }
    world.feed(input.substr(0, size));
    input.remove_prefix(size);
  }
  world.session->eof();
  world.settle();
  const std::size_t refusal = std::min(world.out.find("HTTP/1.1 4"), world.out.find("HTTP/1.1 5"));
  Outcome outcome{world.out.substr(0, refusal), 0, {}};
  for (const auto& call : world.app.calls) {
    if (!call->body_ended) continue;
    ++outcome.requests;
    outcome.seen += call->method + ' ' + call->target + ' ' + call->body + '\n';
    if (call->headers.count("host") > 1) std::abort();
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;
  const std::string_view input{reinterpret_cast<const char*>(data), size};
  const Outcome whole = run(input, 0);
  for (unsigned seed : {1U, 77U})
    if (run(input, seed) != whole) std::abort();
  return 0;
}
