// HTTP/1 responses into octets. Knows how a body is delimited and what the head says about the connection;
// keeps no state. Byte for byte as uvicorn writes it, where uvicorn is right.
#pragma once

#include <cstdint>
#include <string>

#include "http/head.h"
#include "http/host.h"

namespace tricorn {

// RFC 9112 6.3, as the sender sees it.
enum class Framing : std::uint8_t {
  none,    // no body, whatever the fields say
  length,  // Content-Length
  chunked,
  close,  // the end of the connection
};
Framing framing_of(const RequestHead& request, const ResponseHead& response);

// What becomes of the connection after this response.
enum class After : std::uint8_t {
  go_on,
  go_on_said,  // HTTP/1.0 must be told
  close,
};

// Whether the application itself ends the connection: a close option in Connection.
bool says_close(const Headers& headers);

void append_interim(std::string& to, const ResponseHead& head);  // 1xx
void append_head(std::string& to, const Host& host, const ResponseHead& head, Framing framing, After after);
void append_chunk_size(std::string& to, std::uint64_t size);  // the data and a CRLF follow
void append_last_chunk(std::string& to, const Headers& trailers);

// A whole answer that no application gave: text/plain, and the connection closes.
enum class Body : std::uint8_t { sent, left_out };  // left out for HEAD
void append_answer(std::string& to, const Host& host, int status, Body body);

}  // namespace tricorn
