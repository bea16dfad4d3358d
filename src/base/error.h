// Errors are values: what went wrong for the protocol, and one plain line for the log.
// Nothing in the core throws across a layer; only the static loop callbacks react to an Error.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

namespace tricorn {

enum class Fault : std::uint8_t {
  protocol,   // the peer broke a rule of its protocol
  too_large,  // a limit on size or count was passed
  timeout,    // the peer was too slow
  flood,      // the peer costs more than it gives: resets, pings, empty frames
  gone,       // the wire is closed or reset
  state,      // the application called in the wrong order
  value,      // the application passed something that cannot be sent
  os,         // a system call failed
};

struct Error {
  Fault fault;
  std::string what;
};

template <class T = void>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(Fault fault, std::string what) {
  return std::unexpected{Error{fault, std::move(what)}};
}

// Adds the text of errno to `what`.
std::unexpected<Error> fail_os(std::string what, int error_number);

}  // namespace tricorn
