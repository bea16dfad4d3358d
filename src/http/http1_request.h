// What the head of an HTTP/1 request means for its connection: whether it may be served, how its body is framed,
// whether the connection goes on afterwards. Stricter than the parser: every message has one reading or is refused.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>

#include "http/head.h"

namespace tricorn {

struct RequestTerms {
  std::optional<std::uint64_t> length;  // of the body, when Content-Length says it
  bool keep_alive = false;              // the client would go on
  bool expects_continue = false;
  bool upgrade = false;  // to a protocol that is not served
  bool patient = false;  // a streaming RPC: its body may pause for hours
};

// The status to refuse the request with, or what was read. Turns a target in absolute-form into origin-form and
// takes Host from it (RFC 9112 3.2.2).
std::expected<RequestTerms, int> read_terms(RequestHead& head);

}  // namespace tricorn
