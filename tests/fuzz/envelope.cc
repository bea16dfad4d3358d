// Octets into an envelope reader, whole and cut into pieces: the same messages and the same error, nothing lost.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "rpc/envelope.h"

namespace {

using namespace tricorn::rpc;

constexpr std::uint64_t k_limit = 300;

struct Seen {
  std::string messages;  // written as envelopes again
  std::string error;
  bool operator==(const Seen&) const = default;
};

Seen run(std::string_view input, unsigned seed) {
  Seen outcome;
  EnvelopeReader reader{k_limit};
  while (!input.empty()) {
    std::size_t size = input.size();
    if (seed != 0) {
      seed = seed * 1'103'515'245 + 12'345;
      size = std::min<std::size_t>(size, 1 + (seed >> 16) % 17);
    }
    const std::vector<char> piece{input.begin(), input.begin() + static_cast<std::ptrdiff_t>(size)};
    input.remove_prefix(size);
    std::string_view in{piece.data(), piece.size()};
    while (true) {
      const auto next = reader.next(in);
      if (reader.held() > 2 * k_limit) std::abort();
      if (!next) return outcome.error = next.error().message, outcome;
      if (!*next) break;
      append_envelope(outcome.messages, (*next)->flags, (*next)->message);
    }
    if (!in.empty()) std::abort();
  }
  if (const auto end = reader.end(); !end) outcome.error = end.error().message;
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input{reinterpret_cast<const char*>(data), size};
  const Seen whole = run(input, 0);
  if (!input.starts_with(whole.messages)) std::abort();
  if (whole.error.empty() && input != whole.messages) std::abort();
  for (unsigned seed : {1U, 77U})
    if (run(input, seed) != whole) std::abort();
  return 0;
}
