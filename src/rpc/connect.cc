#include "rpc/connect.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/text.h"

namespace tricorn::rpc {
namespace {

struct Range {
  unsigned char first, last;
  bool holds(unsigned char c) const { return first <= c && c <= last; }
};

// The second octets that may follow a lead octet, and how many octets there are in all (Unicode 15, table 3-7).
struct Lead {
  Range leads, second;
  std::size_t size;
};
constexpr std::array<Lead, 9> k_leads{{{{0x00, 0x7f}, {}, 1},
                                       {{0xc2, 0xdf}, {0x80, 0xbf}, 2},
                                       {{0xe0, 0xe0}, {0xa0, 0xbf}, 3},
                                       {{0xe1, 0xec}, {0x80, 0xbf}, 3},
                                       {{0xed, 0xed}, {0x80, 0x9f}, 3},
                                       {{0xee, 0xef}, {0x80, 0xbf}, 3},
                                       {{0xf0, 0xf0}, {0x90, 0xbf}, 4},
                                       {{0xf1, 0xf3}, {0x80, 0xbf}, 4},
                                       {{0xf4, 0xf4}, {0x80, 0x8f}, 4}}};

// How many octets at the front belong together, and whether they are a whole character.
struct Character {
  std::size_t size;
  bool whole;
};
Character front_character(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto lead = std::ranges::find_if(k_leads, [&](const Lead& row) { return row.leads.holds(at(0)); });
  if (lead == k_leads.end()) return {1, false};
  for (std::size_t i = 1; i < lead->size; ++i) {
    const Range follows = i == 1 ? lead->second : Range{0x80, 0xbf};
    if (i == text.size() || !follows.holds(at(i))) return {i, false};
  }
  return {lead->size, true};
}

// As bytes.decode(errors="replace"): U+FFFD for each maximal part that is not UTF-8.
std::string replace_bad_utf8(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const Character character = front_character(text);
    result += character.whole ? text.substr(0, character.size) : "\xef\xbf\xbd";
    text.remove_prefix(character.size);
  }
  return result;
}

std::string unquote_plus(std::string_view text) {
  std::string spaced{text};
  std::ranges::replace(spaced, '+', ' ');
  return text.contains('%') ? replace_bad_utf8(percent_decode(spaced)) : spaced;
}

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }

int sextet(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+' || c == '-') return 62;
  if (c == '/' || c == '_') return 63;
  return -1;
}

void append_json(std::string& to, std::string_view text) {
  constexpr std::string_view plain = "\"\\\b\f\n\r\t", escaped = "\"\\bfnrt", digits = "0123456789abcdef";
  to += '"';
  for (const char c : text) {
    const auto octet = static_cast<unsigned char>(c);
    if (const std::size_t i = plain.find(c); i != std::string_view::npos) {
      to.append(1, '\\').append(1, escaped[i]);
    } else if (octet < 0x20) {
      to.append("\\u00").append(1, digits[octet >> 4]).append(1, digits[octet & 15]);
    } else {
      to += c;
    }
  }
  to += '"';
}

// Each name once, where it comes first, with all its values.
void append_metadata(std::string& to, const Headers& trailers) {
  std::vector<std::string_view> names;
  for (const Field field : trailers)
    if (std::ranges::find(names, field.name) == names.end()) names.push_back(field.name);
  std::string_view before_name = "{";
  for (const std::string_view name : names) {
    to += before_name;
    before_name = ", ";
    append_json(to, name);
    std::string_view before_value = ": [";
    for (const Field field : trailers) {
      if (field.name != name) continue;
      to += before_value;
      before_value = ", ";
      append_json(to, field.value);
    }
    to += ']';
  }
  to += '}';
}

}  // namespace

std::optional<std::string> query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    if (pair.empty() || unquote_plus(pair.substr(0, equals)) != name) continue;
    return unquote_plus(pair.substr(std::min(equals + 1, pair.size())));
  }
  return std::nullopt;
}

Outcome<GetRequest> read_get(std::string_view query) {
  std::optional<std::string> message = query_value(query, "message");
  if (!message) return fail(Code::invalid_argument, "'message' parameter is required for GET requests");
  if (query_value(query, "base64") == "1") message = base64url_decode(*message);
  if (!message) return fail(Code::invalid_argument, "Invalid base64 encoding");
  std::string encoding = query_value(query, "compression").value_or("");
  if (encoding.empty()) encoding = "identity";
  return GetRequest{.message = std::move(*message), .encoding = std::move(encoding)};
}

std::string error_json(const RpcError& error, std::string_view details) {
  std::string json = R"({"code": )";
  append_json(json, name(error.code));
  json += R"(, "message": )";
  append_json(json, error.message);
  if (!details.empty()) json.append(R"(, "details": )").append(details);
  return json += '}';
}

std::string end_stream_json(const Headers& trailers, std::string_view error) {
  std::string json = "{";
  if (!trailers.empty()) {
    json += R"("metadata": )";
    append_metadata(json, trailers);
  }
  if (!error.empty()) json.append(trailers.empty() ? "" : ", ").append(R"("error": )").append(error);
  return json += '}';
}

std::optional<std::string> base64url_decode(std::string_view text) {
  if (!std::ranges::all_of(text, is_ascii)) return std::nullopt;
  std::string result;
  result.reserve(text.size() / 4 * 3 + 3);
  std::uint32_t bits = 0;
  unsigned place = 0;  // in a group of four
  unsigned pads = 0;
  for (const char c : text) {
    if (c == '=' && place >= 2 && place + ++pads >= 4) return result;  // padded: the rest is not looked at
    const int six = sextet(c);
    if (six < 0) continue;
    pads = 0;
    bits = bits << 6 | static_cast<std::uint32_t>(six);
    if (place > 0) result += static_cast<char>(bits >> (6 - 2 * place));
    place = (place + 1) % 4;
  }
  if (place == 1) return std::nullopt;
  return result;
}

}  // namespace tricorn::rpc
