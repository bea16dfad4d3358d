#include "http/http2_request.h"

#include <algorithm>

#include "base/text.h"

namespace tricorn {
namespace {

constexpr std::uint64_t k_field_overhead = 32;  // RFC 9113 6.5.2: how a header list is measured
constexpr std::uint64_t k_absurd = 4;

// RFC 9113 8.3.1, and 10.3 for what HTTP/1.1 could not carry.
bool is_target(std::string_view target, std::string_view method) {
  if (target.empty() || (target.front() != '/' && !(target == "*" && method == "OPTIONS"))) return false;
  return std::ranges::all_of(target, [](char c) { return static_cast<unsigned char>(c) > 0x20 && c != 0x7f; });
}

bool over(std::uint64_t value, std::uint64_t limit, std::uint64_t times) { return limit > 0 && value > limit * times; }

}  // namespace

void RequestBuilder::begin(Part part) {
  part_ = part;
  size_ = Size::fits;
  head_ = {};
  head_.version = Version::http2;
  authority_.clear();
  cookie_.clear();
  octets_ = count_ = 0;
  crumbs_ = hosts_ = 0;
  content_length_.reset();
  has_authority_ = hosts_differ_ = expects_continue_ = false;
}

RequestBuilder::Size RequestBuilder::field(std::string_view name, std::string_view value) {
  measure(name, value);
  if (part_ == Part::trailers || name.empty()) return size_;  // ASGI has no place for request trailers
  if (name.front() == ':') pseudo(name, value);
  else if (size_ == Size::fits) regular(name, value);
  return size_;
}

void RequestBuilder::measure(std::string_view name, std::string_view value) {
  octets_ += name.size() + value.size() + k_field_overhead;
  count_ += name.starts_with(':') || (name == "cookie" && crumbs_ > 0) ? 0 : 1;
  const std::uint64_t octets = part_ == Part::head ? limits_.header_size : limits_.trailer_size;
  if (over(octets_, octets, k_absurd) || over(count_, limits_.header_count, k_absurd)) size_ = Size::absurd;
  else if (over(octets_, octets, 1) || over(count_, limits_.header_count, 1)) size_ = Size::over;
}

// Unknown ones, doubled ones and late ones are refused by nghttp2. :scheme is dropped: ASGI's is the connection's.
void RequestBuilder::pseudo(std::string_view name, std::string_view value) {
  if (over(value.size(), limits_.header_size, 1)) return;  // refused by its size
  if (name == ":method") head_.method = value;
  else if (name == ":path") head_.target = value;
  else if (name == ":protocol") head_.protocol = value;
  else if (name == ":authority") {
    authority_ = value;
    has_authority_ = true;
  }
}

void RequestBuilder::host_first() {
  if (has_authority_ && head_.headers.empty()) head_.headers.add("host", authority_);
}

void RequestBuilder::regular(std::string_view name, std::string_view value) {
  host_first();
  switch (name.size()) {  // most names are none of these
    case 4:
      if (name != "host") break;
      ++hosts_;
      if (!has_authority_) break;
      hosts_differ_ = hosts_differ_ || !equals_ignoring_case(value, authority_);
      return;
    case 6:
      if (name == "cookie") return cookie(value);
      if (name == "expect") expects_continue_ = equals_ignoring_case(value, "100-continue");
      break;
    case 14:
      if (name != "content-length") break;
      if (auto length = parse_number(value)) content_length_ = *length;  // nghttp2 has refused what is not a number
      break;
    default: break;
  }
  head_.headers.add(name, value);
}

// RFC 9113 8.2.3: crumbs are put together again, in the place of the first.
void RequestBuilder::cookie(std::string_view crumb) {
  if (crumbs_++ == 0) {
    head_.headers.add("cookie", crumb);
    cookie_ = crumb;
    return;
  }
  cookie_.append("; ").append(crumb);
}

std::expected<RequestHead, int> RequestBuilder::finish() {
  host_first();
  if (crumbs_ > 1) head_.headers.set_first("cookie", cookie_);
  if (const int status = fault(); status != 0) return std::unexpected{status};
  return std::move(head_);
}

// The status that refuses the head, 0 if it is good.
int RequestBuilder::fault() const {
  if (size_ != Size::fits) return 431;
  if (head_.method == "CONNECT") return 501;  // also RFC 8441's, until its setting is sent
  if (!is_token(head_.method)) return 400;
  if (over(head_.target.size(), limits_.request_line, 1)) return 414;
  if (!is_target(head_.target, head_.method)) return 400;
  if (hosts_ > 1 || hosts_differ_) return 400;
  const auto host = has_authority_ ? std::optional<std::string_view>{authority_} : head_.headers.find("host");
  return host && is_host(*host) ? 0 : 400;
}

}  // namespace tricorn
