// Small parsing helpers for HTTP text. ASCII only, locale-free, no allocation unless the result is a string.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tricorn {

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }
bool equals_ignoring_case(std::string_view a, std::string_view b);
std::string lower(std::string_view text);
std::string_view trim(std::string_view text);  // optional white space: SP and HTAB (RFC 9110 5.6.3)

bool is_token(std::string_view text);  // RFC 9110 5.6.2, not empty
bool is_field_value(
    std::string_view text);  // RFC 9110 5.5: no CR, LF, NUL or other control except HTAB; trimmed or not

// Calls `visit(token)` for each element of a comma-separated list, trimmed, empty ones left out (RFC 9110 5.6.1).
template <class Visit>
void each_in_list(std::string_view list, Visit&& visit) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view item = trim(list.substr(0, comma));
    if (!item.empty()) visit(item);
    if (comma == std::string_view::npos) return;
    list.remove_prefix(comma + 1);
  }
}
bool list_has(std::string_view list, std::string_view token);  // ignoring case

// Decimal digits only; an error for anything else, and Fault::too_large above `limit`.
Result<std::uint64_t> parse_number(std::string_view digits, std::uint64_t limit = UINT64_MAX);

// Percent-decoding as Python's urllib.parse.unquote_to_bytes: a bad escape stays as it is.
std::string percent_decode(std::string_view text);

// host [":" port] or "[" IPv6 "]" [":" port] of RFC 9110 7.2; no userinfo, path or white space.
bool is_host(std::string_view host);

}  // namespace tricorn
