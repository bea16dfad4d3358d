// One connection's protocol, with no I/O: octets in, octets out, exchanges in between.
//   feed   gives it what arrived (plain text, after TLS)      fill   pulls what is to be sent
// It decides when it is finished; the connection decides when the socket closes.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "base/outbox.h"
#include "http/exchange.h"
#include "http/host.h"

namespace tricorn {

class Session : public Wire {
 public:
  virtual ~Session() = default;

  // Takes all of `plain`. An error means: nothing more can be read; fill() still gives what is to be said about it
  // (a 400, a GOAWAY), then the session is finished.
  virtual Result<void> feed(std::string_view plain) = 0;
  // The peer has ended its side (FIN or close_notify). Answers can still be written.
  virtual void eof() = 0;
  // The same is known, but behind octets that are not wanted yet: eof() comes once they were read. Applications whose
  // request is complete hear of it now, since what lies before it may never be read.
  virtual void eof_ahead() = 0;
  // The transport is gone: every exchange is told. Nothing is called afterwards but the destructor.
  virtual void gone() = 0;
  // Appends at most about `budget` octets to `out`. What is left over keeps the connection dirty: `pending()`.
  virtual void fill(Outbox& out, std::size_t budget) = 0;
  // Whether fill() would produce something now.
  virtual bool pending() const = 0;
  // Whether more input is wanted now. False is backpressure: the application has not taken what is there.
  virtual bool reading() const = 0;
  // No more requests after the ones in flight; HTTP/2 says GOAWAY in two steps. Idempotent.
  virtual void drain() = 0;
  // Nothing in flight and nothing to come: close the connection once the output is written.
  virtual bool finished() const = 0;
  // No request in flight: may be closed at once when connections are scarce or the server stops.
  virtual bool idle() const = 0;
  // Called some times a second. Ends what has taken too long; an error closes the connection at once.
  virtual Result<void> tick(Millis now) = 0;
};

enum class Protocol : std::uint8_t { http1, http2 };

// `dirty` is the connection's hook; `peer` outlives the session.
std::unique_ptr<Session> make_session(Protocol protocol, Host& host, DirtyHook& dirty, const Peer& peer);
// Each in its own file, for make_session and tests.
std::unique_ptr<Session> make_http1(Host& host, DirtyHook& dirty, const Peer& peer);
std::unique_ptr<Session> make_http2(Host& host, DirtyHook& dirty, const Peer& peer);

// Name and version of the library under each, as linked: "llhttp 9.3.1", "nghttp2 1.52.0".
std::string http1_library();
std::string http2_library();

}  // namespace tricorn
