#include "rpc/protocol.h"

#include <gtest/gtest.h>

#include <vector>

namespace tricorn::rpc {
namespace {

using namespace std::chrono_literals;

const std::vector<std::string> k_codecs{"proto", "json"};
const Method k_unary{.codecs = k_codecs};
const Method k_safe{.effects = Effects::none, .codecs = k_codecs};
const Method k_stream{.shape = Shape::stream, .codecs = k_codecs};

RequestHead request(std::string_view content_type, std::initializer_list<Field> more = {}) {
  RequestHead head{.method = "POST", .target = "/a.B/C", .protocol = {}, .version = Version::http2, .headers = {}};
  if (!content_type.empty()) head.headers.add("content-type", content_type);
  for (Field field : more) head.headers.add(field.name, field.value);
  return head;
}

RequestHead get(std::string_view query) {
  RequestHead head{.method = "GET", .target = "/a.B/C?" + std::string{query}, .protocol = {}, .headers = {}};
  return head;
}

// "kind codec", or how it is refused.
std::string choice(const RequestHead& head, const Method& method) {
  constexpr std::string_view kinds[] = {"unary", "stream", "grpc", "web"};
  const auto terms = read_terms(head, method);
  if (terms) return std::string{kinds[static_cast<int>(terms->kind)]}.append(" ").append(terms->codec);
  if (const auto* refusal = std::get_if<Refusal>(&terms.error()))
    return std::to_string(refusal->status).append(" ").append(refusal->header.value);
  return std::get<RpcError>(terms.error()).message;
}

constexpr std::string_view k_415 = "415 application/json, application/proto";

TEST(RpcProtocol, ChoosesByContentType) {
  struct Row {
    std::string_view type, unary, stream;
  };
  const Row rows[] = {
      {"application/proto", "unary proto", k_415},
      {"application/json", "unary json", k_415},
      {"Application/JSON; charset=utf-8", "unary json", k_415},
      {" application/json ;", "unary json", k_415},
      {"json", "unary json", "stream json"},  // without the prefix the whole is the codec's name
      {"application/connect+proto", k_415, "stream proto"},
      {"APPLICATION/connect+JSON;x", k_415, "stream json"},
      {"application/grpc", "grpc proto", "grpc proto"},
      {"application/grpc+json", "grpc json", "grpc json"},
      {"application/grpc+", k_415, k_415},
      {"application/grpc+text", k_415, k_415},
      {"application/grpc-web", "web proto", "web proto"},
      {"application/grpc-web+json", "web json", "web json"},
      {"application/grpc;x", k_415, k_415},  // gRPC's are compared octet by octet
      {"Application/grpc", k_415, k_415},
      {"application/grpc+proto;x", k_415, k_415},
      {"application/grpc-web-text", k_415, k_415},
      {"application/grpcx", k_415, k_415},
      {"application/", k_415, k_415},
      {"text/plain", k_415, k_415},
      {"", k_415, k_415},
  };
  for (const auto& [type, unary, stream] : rows) {
    EXPECT_EQ(choice(request(type), k_unary), unary) << type;
    EXPECT_EQ(choice(request(type), k_stream), stream) << type;
  }
}

TEST(RpcProtocol, TakesTheFirstOfDoubledHeaders) {
  EXPECT_EQ(choice(request("application/json", {{"content-type", "text/plain"}}), k_unary), "unary json");
  EXPECT_EQ(read_terms(request("application/grpc", {{"grpc-timeout", "1S"}, {"grpc-timeout", "x"}}), k_unary)->timeout,
            1s);
}

TEST(RpcProtocol, RefusesOtherMethodsBeforeAnythingElse) {
  for (std::string_view method : {"GET", "PUT", "HEAD", "post", "OPTIONS"})
    for (std::string_view type : {"application/proto", "application/grpc", "application/grpc-web", "text/plain"}) {
      RequestHead head = request(type, {{"connect-timeout-ms", "x"}, {"grpc-timeout", "x"}});
      head.method = method;
      EXPECT_EQ(read_terms(head, k_unary).error(), Denial(Refusal{405, {"allow", "POST"}}));
      const bool grpc = type.starts_with("application/grpc");
      if (!grpc && method == "GET") continue;
      EXPECT_EQ(read_terms(head, k_safe).error(), Denial(Refusal{405, {"allow", grpc ? "POST" : "GET, POST"}}));
    }
}

TEST(RpcProtocol, RefusesGrpcOverHttp11) {
  RequestHead head = request("application/grpc");
  head.version = Version::http11;
  EXPECT_EQ(read_terms(head, k_unary).error(), Denial(Refusal{505, {}}));
  head = request("application/grpc-web");
  head.version = Version::http11;
  EXPECT_EQ(choice(head, k_unary), "web proto");
}

TEST(RpcProtocol, TakesTheCodecOfAGetFromItsQuery) {
  EXPECT_EQ(choice(get("encoding=json&message=%7B%7D"), k_safe), "unary json");
  EXPECT_EQ(choice(get("message=&encoding=pr%6fto&encoding=json"), k_safe), "unary proto");
  EXPECT_EQ(choice(get("message=x"), k_safe), k_415);
  EXPECT_EQ(choice(get("encoding=JSON"), k_safe), k_415);
  RequestHead head = get("encoding=json");
  head.headers.add("content-encoding", "gzip");
  EXPECT_EQ(read_terms(head, k_safe)->encoding, "identity");
  head.method = "POST";
  EXPECT_EQ(choice(head, k_safe), k_415);
}

TEST(RpcProtocol, ChecksConnectsVersionThenItsTimeoutThenTheCodec) {
  EXPECT_EQ(choice(request("application/json", {{"connect-protocol-version", "1"}}), k_unary), "unary json");
  RequestHead head = request("text/plain", {{"connect-protocol-version", "v1"}, {"connect-timeout-ms", "x"}});
  EXPECT_EQ(choice(head, k_unary), "connect-protocol-version must be '1': got 'v1'");
  head.headers.set_first("connect-protocol-version", "");
  EXPECT_EQ(choice(head, k_stream), "connect-protocol-version must be '1': got ''");
  head.headers.set_first("connect-protocol-version", "1");
  EXPECT_EQ(choice(head, k_unary), "Invalid timeout header: 'x'");
  head.headers.set_first("connect-timeout-ms", "");
  EXPECT_EQ(choice(head, k_unary), k_415);
  EXPECT_EQ(choice(request("application/grpc+x", {{"grpc-timeout", ""}, {"connect-protocol-version", "2"}}), k_unary),
            "protocol error: invalid timeout ''");
}

TEST(RpcProtocol, ReadsTimeoutAndEncodingsFromEachProtocolsHeaders) {
  struct Row {
    std::string_view type;
    const Method& method;
    std::chrono::nanoseconds timeout;
    std::string_view encoding, accept;
  };
  const Row rows[] = {{"application/json", k_unary, 5ms, "u", "U, x"},
                      {"application/connect+json", k_stream, 5ms, "c", "C"},
                      {"application/grpc", k_unary, 7s, "g", "G"},
                      {"application/grpc-web", k_stream, 7s, "g", "G"}};
  for (const Row& row : rows) {
    const RequestHead head = request(row.type, {{"connect-timeout-ms", "5"},
                                                {"grpc-timeout", "7S"},
                                                {"content-encoding", "u"},
                                                {"accept-encoding", "U, x"},
                                                {"connect-content-encoding", "c"},
                                                {"connect-accept-encoding", "C"},
                                                {"grpc-encoding", "g"},
                                                {"grpc-accept-encoding", "G"}});
    const auto terms = read_terms(head, row.method);
    ASSERT_TRUE(terms);
    EXPECT_EQ(terms->timeout, row.timeout);
    EXPECT_EQ(terms->encoding, row.encoding);
    EXPECT_EQ(terms->accept, row.accept);
    const RequestHead silent = request(row.type, {{encoding_header(terms->kind), ""}});
    const auto defaults = read_terms(silent, row.method);
    EXPECT_EQ(defaults->timeout, std::nullopt);
    EXPECT_EQ(defaults->encoding, "identity");
    EXPECT_EQ(defaults->accept, "");
  }
}

TEST(RpcProtocol, NamesTheAnswersTypeAndHeaders) {
  EXPECT_EQ(content_type(Kind::connect_unary, "json"), "application/json");
  EXPECT_EQ(content_type(Kind::connect_stream, "json"), "application/connect+json");
  EXPECT_EQ(content_type(Kind::grpc, "proto"), "application/grpc+proto");
  EXPECT_EQ(content_type(Kind::grpc_web, "proto"), "application/grpc-web+proto");
  EXPECT_EQ(bare_content_type(Kind::grpc), "application/grpc");
  EXPECT_EQ(bare_content_type(Kind::grpc_web), "application/grpc-web");
  EXPECT_EQ(encoding_header(Kind::connect_unary), "content-encoding");
  EXPECT_EQ(accept_header(Kind::connect_stream), "connect-accept-encoding");
}

TEST(RpcProtocol, NegotiatesEncodingsAsConnectrpcDoes) {
  const std::vector<std::string> supported{"gzip", "br"};
  EXPECT_EQ(negotiate_encoding("", supported), "identity");
  EXPECT_EQ(negotiate_encoding("zstd, br ,gzip", supported), "br");  // the client's order
  EXPECT_EQ(negotiate_encoding(",, gzip", supported), "gzip");
  EXPECT_EQ(negotiate_encoding("identity, gzip", supported), "identity");
  EXPECT_EQ(negotiate_encoding("gzip;q=1.0", supported), "identity");  // weights are not read
  EXPECT_EQ(negotiate_encoding("gzip;q=0, br", supported), "br");
  EXPECT_EQ(negotiate_encoding("GZIP, *", supported), "identity");
  EXPECT_EQ(negotiate_encoding("gzip", {}), "identity");
}

TEST(RpcProtocol, ListsWhatIsSupportedBesideAnUnknownEncoding) {
  const std::vector<std::string> two{"gzip", "identity", "br"};
  EXPECT_EQ(fail_unknown_encoding("x", two).error(),
            (RpcError{Code::unimplemented, "unknown compression: 'x': supported encodings are gzip, br"}));
  EXPECT_EQ(fail_unknown_encoding("gzip", {}).error().message,
            "unknown compression: 'gzip': compression is not supported");
}

}  // namespace
}  // namespace tricorn::rpc
