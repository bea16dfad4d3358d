#include "base/text.h"

#include <algorithm>
#include <array>

namespace tricorn {
namespace {

constexpr auto k_token = [] {
  std::array<bool, 256> table{};
  for (int c = '0'; c <= '9'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (int c = 'a'; c <= 'z'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (int c = 'A'; c <= 'Z'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (char c : std::string_view{"!#$%&'*+-.^_`|~"}) table[static_cast<unsigned char>(c)] = true;
  return table;
}();

// reg-name and IPv4address: unreserved, sub-delims, pct-encoded (RFC 3986 3.2.2).
bool is_reg_name_char(char c) {
  if (k_token[static_cast<unsigned char>(c)] && c != '#' && c != '^' && c != '`' && c != '|') return true;
  return std::string_view{"(),;="}.contains(c);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

int hex(char c) {
  if (is_digit(c)) return c - '0';
  const char l = lower(c);
  return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

}  // namespace

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

std::string lower(std::string_view text) {
  std::string result{text};
  std::transform(result.begin(), result.end(), result.begin(), [](char c) { return lower(c); });
  return result;
}

std::string_view trim(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool is_token(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return k_token[static_cast<unsigned char>(c)]; });
}

bool is_field_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto octet = static_cast<unsigned char>(c);
    return octet == '\t' || (octet >= 0x20 && octet != 0x7f);
  });
}

bool list_has(std::string_view list, std::string_view token) {
  bool found = false;
  each_in_list(list, [&](std::string_view item) { found = found || equals_ignoring_case(item, token); });
  return found;
}

Result<std::uint64_t> parse_number(std::string_view digits, std::uint64_t limit) {
  if (digits.empty()) return fail(Fault::protocol, "number is empty");
  std::uint64_t n = 0;
  for (char c : digits) {
    if (!is_digit(c)) return fail(Fault::protocol, "not a number");
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (n > limit / 10 || (n == limit / 10 && digit > limit % 10))
      return fail(Fault::too_large, "number is over the limit");
    n = n * 10 + digit;
  }
  return n;
}

std::string percent_decode(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0) {
      result.push_back(static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2])));
      i += 2;
    } else {
      result.push_back(text[i]);
    }
  }
  return result;
}

bool is_host(std::string_view host) {
  if (host.empty()) return false;
  std::string_view rest;
  if (host.front() == '[') {
    const std::size_t close = host.find(']');
    if (close == std::string_view::npos || close == 1) return false;
    for (char c : host.substr(1, close - 1))
      if (hex(c) < 0 && c != ':' && c != '.' && c != 'v') return false;
    rest = host.substr(close + 1);
    if (!rest.empty() && rest.front() != ':') return false;
  } else {
    const std::size_t colon = host.find(':');
    for (char c : host.substr(0, colon))
      if (!is_reg_name_char(c)) return false;
    if (colon == 0) return false;
    if (colon != std::string_view::npos) rest = host.substr(colon);
  }
  return rest.size() <= 6 && (rest.empty() || std::all_of(rest.begin() + 1, rest.end(), is_digit));
}

}  // namespace tricorn
