#include "rpc/timeout.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace tricorn::rpc {
namespace {

using std::chrono::nanoseconds;

constexpr std::size_t k_connect_digits = 10;
constexpr std::size_t k_grpc_digits = 8;

struct Unit {
  char letter;
  std::int64_t nanos;
};
constexpr std::array<Unit, 6> k_units{
    {{'H', 3'600'000'000'000}, {'M', 60'000'000'000}, {'S', 1'000'000'000}, {'m', 1'000'000}, {'u', 1'000}, {'n', 1}}};

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Characters, not octets: which of two errors is told depends on it.
auto length(std::string_view utf8) {
  return std::ranges::count_if(utf8, [](char c) { return !continues(c); });
}

std::string_view last_character(std::string_view utf8) {
  std::size_t at = utf8.size() - 1;
  while (at > 0 && continues(utf8[at])) --at;
  return utf8.substr(at);
}

bool is_number(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::int64_t number(std::string_view digits) {
  std::int64_t n = 0;
  for (char c : digits) n = n * 10 + (c - '0');
  return n;
}

std::string quoted(std::string_view text) { return '\'' + std::string{text} + '\''; }

nanoseconds times(std::int64_t count, std::int64_t nanos) {
  return count > INT64_MAX / nanos ? nanoseconds::max() : nanoseconds{count * nanos};
}

}  // namespace

Outcome<Timeout> connect_timeout(std::optional<std::string_view> header) {
  if (!header || header->empty()) return std::nullopt;
  // The quotation mark that is missing here is missing in connectrpc.
  if (length(*header) > static_cast<std::ptrdiff_t>(k_connect_digits))
    return fail(Code::invalid_argument, "Invalid timeout header: '" + std::string{*header} + " has >10 digits");
  if (!is_number(*header)) return fail(Code::invalid_argument, "Invalid timeout header: " + quoted(*header));
  return times(number(*header), 1'000'000);
}

Outcome<Timeout> grpc_timeout(std::optional<std::string_view> header) {
  if (!header) return std::nullopt;
  if (length(*header) < 2) return fail(Code::invalid_argument, "protocol error: invalid timeout " + quoted(*header));
  const std::string_view letter = last_character(*header);
  const auto unit = std::ranges::find_if(k_units, [&](Unit row) { return letter == std::string_view{&row.letter, 1}; });
  if (unit == k_units.end())
    return fail(Code::invalid_argument, "protocol error: timeout has invalid unit " + quoted(letter));
  const std::string_view digits = header->substr(0, header->size() - 1);
  if (!is_number(digits)) return fail(Code::invalid_argument, "protocol error: invalid timeout " + quoted(*header));
  if (digits.size() > k_grpc_digits)
    return fail(Code::invalid_argument, "protocol error: timeout " + quoted(*header) + " is too long");
  return times(number(digits), unit->nanos);
}

}  // namespace tricorn::rpc
