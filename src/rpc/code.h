// The sixteen codes that an RPC can fail with, and the error that carries one.
// The value of a Code is its grpc-status; success has none.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tricorn::rpc {

enum class Code : std::uint8_t {
  canceled = 1,
  unknown,
  invalid_argument,
  deadline_exceeded,
  not_found,
  already_exists,
  permission_denied,
  resource_exhausted,
  failed_precondition,
  aborted,
  out_of_range,
  unimplemented,
  internal,
  unavailable,
  data_loss,
  unauthenticated,
};

std::string_view name(Code code);  // "deadline_exceeded", as Connect's JSON has it
int http_status(Code code);        // of a Connect unary error
std::optional<Code> code_named(std::string_view name);
std::optional<Code> code_of_grpc(unsigned status);  // none for 0 and above 16

// What the client is told. The texts are connectrpc's, since programs match on them.
struct RpcError {
  Code code;
  std::string message;
  bool operator==(const RpcError&) const = default;
};

template <class T = void>
using Outcome = std::expected<T, RpcError>;

inline std::unexpected<RpcError> fail(Code code, std::string message) {
  return std::unexpected{RpcError{code, std::move(message)}};
}

// The message, or what it decompresses to, is over read_max_bytes.
std::unexpected<RpcError> fail_too_large(std::uint64_t limit);

}  // namespace tricorn::rpc
