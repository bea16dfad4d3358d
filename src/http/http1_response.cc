#include "http/http1_response.h"

#include <array>
#include <charconv>
#include <string_view>

#include "base/text.h"

namespace tricorn {
namespace {

void append_field(std::string& to, std::string_view name, std::string_view value) {
  to.append(name).append(": ").append(value).append("\r\n");
}

void append_status_line(std::string& to, int status) {
  std::array<char, 12> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), status).ptr;
  to.append("HTTP/1.1 ").append(digits.data(), end).append(" ").append(reason_phrase(status)).append("\r\n");
}

// Date, Server, then what the operator added; a server field among those replaces ours.
void append_defaults(std::string& to, const Host& host) {
  if (host.date_header) append_field(to, "date", host.clock.date());
  bool server = host.server_header;
  for (const auto& field : host.headers) server = server && field.first != "server";
  if (server) to.append("server: tricorn\r\n");
  for (const auto& [name, value] : host.headers) append_field(to, name, value);
}

// The application's fields, less those that are the connection's business and would contradict it.
class FieldWriter {
 public:
  FieldWriter(std::string& to, const ResponseHead& head, After after)
      : to_(to), after_(after), length_allowed_(head.status >= 200 && head.status != 204) {}  // RFC 9110 8.6

  void write(Field field) {
    if (field.name == "connection") return write_connection(field);
    if (field.name == "transfer-encoding") return;  // the framing is ours (ASGI: servers must ignore it)
    if (field.name == "content-length" && !std::exchange(length_allowed_, false)) return;
    append_field(to_, field.name, field.value);
  }
  bool said() const { return said_; }  // what After asks for

 private:
  void write_connection(Field field) {
    const bool close = list_has(field.value, "close");
    if (after_ == After::close && !close) return;
    said_ = said_ || close || list_has(field.value, "keep-alive");
    append_field(to_, field.name, field.value);
  }

  std::string& to_;
  After after_;
  bool length_allowed_;
  bool said_ = false;
};

}  // namespace

Framing framing_of(const RequestHead& request, const ResponseHead& response) {
  const int status = response.status;
  if (request.method == "HEAD" || status < 200 || status == 204 || status == 304) return Framing::none;
  if (response.headers.has("content-length")) return Framing::length;
  return request.version == Version::http10 ? Framing::close : Framing::chunked;  // RFC 9112 6.1
}

bool says_close(const Headers& headers) {
  bool found = false;
  for (Field field : headers) found = found || (field.name == "connection" && list_has(field.value, "close"));
  return found;
}

void append_interim(std::string& to, const ResponseHead& head) {
  append_status_line(to, head.status);
  FieldWriter fields{to, head, After::go_on};
  for (Field field : head.headers) fields.write(field);
  to.append("\r\n");
}

void append_head(std::string& to, const Host& host, const ResponseHead& head, Framing framing, After after) {
  append_status_line(to, head.status);
  append_defaults(to, host);
  FieldWriter fields{to, head, after};
  for (Field field : head.headers) fields.write(field);
  if (after == After::close && !fields.said()) to.append("connection: close\r\n");
  if (after == After::go_on_said && !fields.said()) to.append("connection: keep-alive\r\n");
  if (framing == Framing::chunked) to.append("transfer-encoding: chunked\r\n");
  to.append("\r\n");
}

void append_chunk_size(std::string& to, std::uint64_t size) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), size, 16).ptr;
  to.append(digits.data(), end).append("\r\n");
}

void append_last_chunk(std::string& to, const Headers& trailers) {
  to.append("0\r\n");
  for (Field field : trailers) append_field(to, field.name, field.value);
  to.append("\r\n");
}

void append_answer(std::string& to, const Host& host, int status, Body body) {
  const std::string_view text = status == 400 ? "Invalid HTTP request received." : reason_phrase(status);
  append_head(to, host, plain_head(status, text), Framing::length, After::close);
  if (body == Body::sent) to.append(text);
}

}  // namespace tricorn
