#include "rpc/protocol.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "rpc/connect.h"

namespace tricorn::rpc {
namespace {

constexpr std::string_view k_identity = "identity";

struct Words {
  std::string_view bare;
  std::string_view prefix;  // of the content type; the codec's name follows
  std::string_view encoding;
  std::string_view accept;
};

// In order of Kind.
constexpr std::array<Words, 4> k_words{
    {{"", "application/", "content-encoding", "accept-encoding"},
     {"", "application/connect+", "connect-content-encoding", "connect-accept-encoding"},
     {"application/grpc", "application/grpc+", "grpc-encoding", "grpc-accept-encoding"},
     {"application/grpc-web", "application/grpc-web+", "grpc-encoding", "grpc-accept-encoding"}}};

const Words& words(Kind kind) { return k_words[static_cast<std::size_t>(kind)]; }

std::string_view value(const RequestHead& head, std::string_view name) { return head.headers.find(name).value_or(""); }

bool speaks(std::string_view content_type, Kind kind) {
  return content_type == words(kind).bare || content_type.starts_with(words(kind).prefix);
}

// gRPC's content types are compared octet by octet, Connect's without case and parameters.
std::string codec_name(std::string_view content_type, Kind kind) {
  const std::string_view prefix = words(kind).prefix;
  if (is_grpc(kind))
    return std::string{content_type.starts_with(prefix) ? content_type.substr(prefix.size()) : "proto"};
  std::string type = lower(trim(content_type.substr(0, content_type.find(';'))));
  // Without the prefix the whole is the name: connect-go does so too.
  if (type.starts_with(prefix)) type.erase(0, prefix.size());
  return type;
}

std::string codec_name(const RequestHead& head, Kind kind) {
  if (head.method == "GET") return query_value(head.query(), "encoding").value_or("");
  return codec_name(value(head, "content-type"), kind);
}

std::optional<Refusal> refuse(const RequestHead& head, Kind kind, Effects effects) {
  // connectrpc cannot be asked: over HTTP/1.1 servers offer it no trailers.
  if (kind == Kind::grpc && head.version < Version::http2) return Refusal{.status = 505, .header = {}};
  const bool with_get = effects == Effects::none && !is_grpc(kind);
  if (head.method == "POST" || (with_get && head.method == "GET")) return std::nullopt;
  return Refusal{.status = 405, .header = {"allow", with_get ? "GET, POST" : "POST"}};
}

Outcome<Timeout> read_timeout(const RequestHead& head, Kind kind) {
  if (is_grpc(kind)) return grpc_timeout(head.headers.find("grpc-timeout"));
  const std::string_view version = head.headers.find("connect-protocol-version").value_or("1");
  if (version != "1")
    return fail(Code::invalid_argument, "connect-protocol-version must be '1': got '" + std::string{version} + "'");
  return connect_timeout(head.headers.find("connect-timeout-ms"));
}

}  // namespace

Kind kind_of(const RequestHead& head, Shape shape) {
  const std::string_view type = value(head, "content-type");
  for (const Kind kind : {Kind::grpc, Kind::grpc_web})
    if (speaks(type, kind)) return kind;
  return shape == Shape::unary ? Kind::connect_unary : Kind::connect_stream;
}

std::expected<Terms, Denial> read_terms(const RequestHead& head, const Method& method) {
  const Kind kind = kind_of(head, method.shape);
  if (auto refusal = refuse(head, kind, method.effects)) return std::unexpected{Denial{*refusal}};
  auto timeout = read_timeout(head, kind);
  if (!timeout) return std::unexpected{Denial{std::move(timeout.error())}};
  const auto codec = std::ranges::find(method.codecs, codec_name(head, kind));
  if (codec == method.codecs.end())  // connectrpc names these two whatever it supports
    return std::unexpected{Denial{Refusal{415, {"accept-post", "application/json, application/proto"}}}};
  const std::string_view encoding = head.method == "GET" ? "" : value(head, encoding_header(kind));
  return Terms{.kind = kind,
               .codec = *codec,
               .encoding = encoding.empty() ? k_identity : encoding,
               .accept = value(head, accept_header(kind)),
               .timeout = *timeout};
}

std::string content_type(Kind kind, std::string_view codec) { return std::string{words(kind).prefix}.append(codec); }
std::string_view bare_content_type(Kind kind) { return words(kind).bare; }
std::string_view encoding_header(Kind kind) { return words(kind).encoding; }
std::string_view accept_header(Kind kind) { return words(kind).accept; }

std::string_view negotiate_encoding(std::string_view accept, std::span<const std::string> supported) {
  std::optional<std::string_view> chosen;
  each_in_list(accept, [&](std::string_view name) {
    if (chosen) return;
    if (name == k_identity) chosen = k_identity;
    if (const auto found = std::ranges::find(supported, name); found != supported.end()) chosen = *found;
  });
  return chosen.value_or(k_identity);
}

std::unexpected<RpcError> fail_unknown_encoding(std::string_view name, std::span<const std::string> supported) {
  std::string list;
  for (const std::string& known : supported)
    if (known != k_identity) list.append(list.empty() ? "supported encodings are " : ", ").append(known);
  if (list.empty()) list = "compression is not supported";
  return fail(Code::unimplemented, "unknown compression: '" + std::string{name} + "': " + list);
}

}  // namespace tricorn::rpc
