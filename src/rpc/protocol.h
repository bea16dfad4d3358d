// Which RPC protocol a request speaks and on what terms, by method, content type and headers alone.
// Refuses before any of the body is read. Every choice and text is connectrpc's.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "http/head.h"
#include "rpc/code.h"
#include "rpc/timeout.h"

namespace tricorn::rpc {

enum class Kind : std::uint8_t { connect_unary, connect_stream, grpc, grpc_web };
constexpr bool is_grpc(Kind kind) { return kind == Kind::grpc || kind == Kind::grpc_web; }

enum class Shape : std::uint8_t { unary, stream };  // unary: one message each way
enum class Effects : std::uint8_t { some, none };   // none: may be called with GET

// What a route knows of the method behind it.
struct Method {
  Shape shape = Shape::unary;
  Effects effects = Effects::some;
  std::span<const std::string> codecs;  // by name
};

// Views into the request's head, but for the codec: into the method's names.
struct Terms {
  Kind kind;
  std::string_view codec;
  std::string_view encoding;  // of the request's messages: "identity" when it says nothing (GET: see read_get)
  std::string_view accept;    // encodings for the answer, as sent
  Timeout timeout;
};

// An answer of HTTP rather than of a protocol: a status, at most one header, no body.
struct Refusal {
  int status;
  Field header;
  bool operator==(const Refusal& other) const {
    return status == other.status && header.name == other.header.name && header.value == other.header.value;
  }
};
using Denial = std::variant<RpcError, Refusal>;

// The protocol in which even an error is answered.
Kind kind_of(const RequestHead& head, Shape shape);
std::expected<Terms, Denial> read_terms(const RequestHead& head, const Method& method);

// --- the answer's head ---
std::string content_type(Kind kind, std::string_view codec);
std::string_view bare_content_type(Kind kind);  // of a trailers-only answer: gRPC and gRPC-Web
std::string_view encoding_header(Kind kind);    // names the encoding, of the request as of the answer
std::string_view accept_header(Kind kind);

// The first of the client's encodings that is supported, else "identity". No weights, and case matters.
std::string_view negotiate_encoding(std::string_view accept, std::span<const std::string> supported);
std::unexpected<RpcError> fail_unknown_encoding(std::string_view name, std::span<const std::string> supported);

}  // namespace tricorn::rpc
