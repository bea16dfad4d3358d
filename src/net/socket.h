// The few system calls on a connected, non-blocking socket. Stateless.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/outbox.h"
#include "http/host.h"

namespace tricorn {

// Who is at both ends, in the form that Python's getpeername and getsockname give.
Peer peer_of(int fd);

// Small answers leave at once, not when the last one is acknowledged.
void set_no_delay(int fd);

struct Received {
  enum class Kind : std::uint8_t { bytes, nothing, end } kind;
  std::string_view bytes{};  // in `buffer`
};
Result<Received> receive(int fd, std::span<char> buffer);
// Whether something is there, without taking it: `bytes` stays empty.
Result<Received> peek(int fd);

// What only the kernel's own look at the socket tells: a reset, or both directions closed.
enum class Hangup : std::uint8_t { none, closed, reset };
Hangup hangup(int fd);

// Sends from the front of `out` what the socket takes now, file ranges by sendfile. Returns how much that was.
Result<std::uint64_t> send(int fd, Outbox& out);

// How much of what was sent the peer has not acknowledged.
std::uint64_t unacknowledged(int fd);

// Closing will reset the connection and forget unsent output, also what the kernel holds.
void forget_unsent(int fd);

}  // namespace tricorn
