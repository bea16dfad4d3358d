#include "http/head.h"

#include "base/text.h"

namespace tricorn {

void Headers::add(std::string_view name, std::string_view value) {
  append_name(name);
  append_value(value);
  commit();
}

void Headers::append_name(std::string_view piece) {
  if (bytes_.capacity() == 0) bytes_.reserve(512);
  const std::size_t start = bytes_.size();
  bytes_.append(piece);
  for (std::size_t i = start; i < bytes_.size(); ++i) bytes_[i] = lower(bytes_[i]);
  open_value_ = static_cast<std::uint32_t>(bytes_.size());
}

void Headers::append_value(std::string_view piece) { bytes_.append(piece); }

void Headers::commit() {
  if (entries_.capacity() == 0) entries_.reserve(16);
  while (bytes_.size() > open_value_ && (bytes_.back() == ' ' || bytes_.back() == '\t')) bytes_.pop_back();
  const auto end = static_cast<std::uint32_t>(bytes_.size());
  entries_.push_back({open_name_, open_value_ - open_name_, open_value_, end - open_value_});
  open_name_ = open_value_ = end;
}

Field Headers::operator[](std::size_t i) const {
  const Entry& entry = entries_[i];
  const std::string_view bytes{bytes_};
  return {bytes.substr(entry.name, entry.name_size), bytes.substr(entry.value, entry.value_size)};
}

std::optional<std::string_view> Headers::find(std::string_view name) const {
  for (Field field : *this)
    if (field.name == name) return field.value;
  return std::nullopt;
}

std::size_t Headers::count(std::string_view name) const {
  std::size_t n = 0;
  for (Field field : *this) n += field.name == name;
  return n;
}

void Headers::set_first(std::string_view name, std::string_view value) {
  const auto at = static_cast<std::uint32_t>(bytes_.size());
  for (Entry& entry : entries_) {
    if (std::string_view{bytes_}.substr(entry.name, entry.name_size) != name) continue;
    bytes_.append(value);
    entry.value = at;
    entry.value_size = static_cast<std::uint32_t>(value.size());
    open_name_ = open_value_ = static_cast<std::uint32_t>(bytes_.size());
    return;
  }
  add(name, value);
  entries_.insert(entries_.begin(), entries_.back());
  entries_.pop_back();
}

void Headers::clear() {
  bytes_.clear();
  entries_.clear();
  open_name_ = open_value_ = 0;
}

std::string_view to_string(Version version) {
  switch (version) {
    case Version::http10: return "1.0";
    case Version::http11: return "1.1";
    case Version::http2: return "2";
  }
  return {};
}

std::string_view RequestHead::path() const {
  const std::string_view all{target};
  return all.substr(0, all.find('?'));
}

std::string_view RequestHead::query() const {
  const std::size_t mark = target.find('?');
  return mark == std::string::npos ? std::string_view{} : std::string_view{target}.substr(mark + 1);
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100: return "Continue";
    case 101: return "Switching Protocols";
    case 102: return "Processing";
    case 103: return "Early Hints";
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 203: return "Non-Authoritative Information";
    case 204: return "No Content";
    case 205: return "Reset Content";
    case 206: return "Partial Content";
    case 207: return "Multi-Status";
    case 208: return "Already Reported";
    case 226: return "IM Used";
    case 300: return "Multiple Choices";
    case 301: return "Moved Permanently";
    case 302: return "Found";
    case 303: return "See Other";
    case 304: return "Not Modified";
    case 305: return "Use Proxy";
    case 307: return "Temporary Redirect";
    case 308: return "Permanent Redirect";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 402: return "Payment Required";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 406: return "Not Acceptable";
    case 407: return "Proxy Authentication Required";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 411: return "Length Required";
    case 412: return "Precondition Failed";
    case 413: return "Request Entity Too Large";
    case 414: return "Request-URI Too Long";
    case 415: return "Unsupported Media Type";
    case 416: return "Requested Range Not Satisfiable";
    case 417: return "Expectation Failed";
    case 418: return "I'm a Teapot";
    case 421: return "Misdirected Request";
    case 422: return "Unprocessable Entity";
    case 423: return "Locked";
    case 424: return "Failed Dependency";
    case 425: return "Too Early";
    case 426: return "Upgrade Required";
    case 428: return "Precondition Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 451: return "Unavailable For Legal Reasons";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    case 506: return "Variant Also Negotiates";
    case 507: return "Insufficient Storage";
    case 508: return "Loop Detected";
    case 510: return "Not Extended";
    case 511: return "Network Authentication Required";
    default: return {};
  }
}

}  // namespace tricorn
