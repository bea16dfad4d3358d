// All that a session may use of the world: where requests go, what the limits are, what time it is.
// One Host per Server; it owns nothing but the notices and counters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/list.h"
#include "http/exchange.h"
#include "http/head.h"
#include "http/router.h"

namespace tricorn {

// Bounds on what a peer may cost. Times in milliseconds, sizes in octets; 0 switches a time or a size off.
struct Limits {
  Millis timeout_keep_alive = 5'000;       // idle between HTTP/1 requests
  Millis timeout_request_header = 30'000;  // from the first octet of a head to its end
  Millis timeout_first_byte = 10'000;      // a connection that has sent nothing
  Millis timeout_request_body = 60'000;    // without progress
  Millis timeout_write = 60'000;           // without progress while output is pending
  Millis timeout_tls_handshake = 10'000;
  Millis timeout_h2_idle = 60'000;      // no open stream
  Millis timeout_h2_settings = 10'000;  // to acknowledge ours
  std::uint64_t min_body_rate = 240;    // octets a second after 30 s, bodies with Content-Length only
  std::uint64_t request_line = 16'384;
  std::uint64_t header_size = 65'536;
  std::uint64_t header_count = 100;     // cookie crumbs count as one
  std::uint64_t chunk_ext = 16'384;     // a message
  std::uint64_t trailer_size = 16'384;  // a message
  std::uint64_t request_body = 0;
  std::uint64_t read_buffer = 65'536;   // unread body a request; reading pauses above
  std::uint64_t write_buffer = 65'536;  // unsent body a response; send() waits above
  std::uint64_t concurrency = 0;        // connections and requests: 503 above
  std::uint64_t connections = 0;        // accepting pauses above
  std::uint32_t h2_max_concurrent_streams = 100;
  std::uint32_t h2_initial_window = 262'144;
  std::uint32_t h2_connection_window = 1'048'576;
  std::uint32_t h2_max_frame_size = 16'384;
  std::uint32_t h2_header_table_size = 4'096;
  std::uint32_t h2_max_continuations = 8;
  std::uint32_t h2_reset_burst = 1'000;   // streams reset by either side
  std::uint32_t h2_reset_rate = 100;      // a second
  std::uint32_t h2_glitch_burst = 1'000;  // frames that cost and give nothing
  std::uint32_t h2_glitch_rate = 100;     // a second
  std::uint32_t h2_max_queued_acks = 1'000;
};

// A line for the error log that pure C++ code met; dispatch hands it to Python.
struct Notice {
  enum class Level : std::uint8_t { info = 20, warning = 30, error = 40 } level;
  std::string text;
};

// What a TLS handshake found out, in the terms of ASGI's "tls" extension. Text is empty where ASGI says None.
struct TlsFacts {
  std::string_view server_cert;           // PEM
  std::vector<std::string> client_chain;  // PEM, the leaf first; empty without a client certificate
  std::string client_name;                // RFC 4514
  std::string client_error;               // why the chain is not trusted
  int version = 0;                        // 0x0303, 0x0304
  int cipher_suite = 0;                   // IANA's 16 bits
};

// Who is at the other end of a connection. Filled by the connection, read when a scope is built.
struct Peer {
  std::string client_host;  // empty: no address (Unix socket)
  int client_port = 0;
  std::string server_host;  // for a Unix socket its path
  int server_port = -1;     // -1: none (Unix socket)
  bool secure = false;
  const TlsFacts* tls = nullptr;  // with `secure`, once the handshake is over
};

// A connection that has output to send or input to take up again is linked into the server's dirty list.
struct Dirty;
class DirtyHook : public Hook<Dirty> {};

struct Host {
  const Router& router;
  const Limits& limits;
  const Clock& clock;
  List<Exchange, Ready>& ready;
  List<DirtyHook, Dirty>& dirty;

  bool server_header = true;
  bool date_header = true;
  std::vector<std::pair<std::string, std::string>> headers{};  // of every response, after date and server

  std::vector<Notice> notices{};  // at most k_notices; more in one tick are counted, not kept
  std::uint64_t notices_dropped = 0;
  std::uint64_t connections = 0;  // open now
  std::uint64_t requests = 0;     // application calls running now
  std::uint64_t total_requests = 0;
  bool draining = false;  // the server is stopping: no new keep-alive

  static constexpr std::size_t k_notices = 32;
  void notice(Notice::Level level, std::string_view text) {
    if (notices.size() < k_notices) notices.push_back({level, std::string{text}});
    else ++notices_dropped;
  }
  // uvicorn's rule for --limit-concurrency.
  bool over_capacity() const {
    return limits.concurrency > 0 && (connections > limits.concurrency || requests >= limits.concurrency);
  }
};

}  // namespace tricorn
