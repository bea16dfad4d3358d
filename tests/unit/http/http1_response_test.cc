#include "http/http1_response.h"

#include <gtest/gtest.h>

#include "testing.h"

namespace tricorn {
namespace {

struct Http1Response : ::testing::Test {
  testing::World world{Protocol::http1};

  static ResponseHead head(int status,
                           std::initializer_list<std::pair<std::string_view, std::string_view>> fields = {}) {
    ResponseHead made{.status = status, .headers = {}};
    for (const auto& [name, value] : fields) made.headers.add(name, value);
    return made;
  }
  std::string written(const ResponseHead& response, Framing framing = Framing::length, After after = After::go_on) {
    std::string text;
    append_head(text, world.host, response, framing, after);
    return text;
  }
  void SetUp() override { world.host.date_header = world.host.server_header = false; }
};

TEST_F(Http1Response, StartsWithDateAndServerAndTheOperatorsFields) {
  world.host.date_header = world.host.server_header = true;
  world.host.headers = {{"x-op", "1"}};
  EXPECT_EQ(written(head(200, {{"Content-Length", "2"}})),
            "HTTP/1.1 200 OK\r\ndate: " + std::string{world.clock.date()} +
                "\r\nserver: tricorn\r\nx-op: 1\r\ncontent-length: 2\r\n\r\n");
  world.host.date_header = false;
  world.host.headers = {{"server", "mine"}};
  EXPECT_EQ(written(head(204)), "HTTP/1.1 204 No Content\r\nserver: mine\r\n\r\n");
}

TEST_F(Http1Response, HasAnEmptyReasonForAnUnknownStatus) { EXPECT_EQ(written(head(599)), "HTTP/1.1 599 \r\n\r\n"); }

TEST_F(Http1Response, DropsTheApplicationsTransferEncoding) {
  EXPECT_EQ(written(head(200, {{"transfer-encoding", "gzip"}, {"a", "b"}}), Framing::chunked),
            "HTTP/1.1 200 OK\r\na: b\r\ntransfer-encoding: chunked\r\n\r\n");
}

TEST_F(Http1Response, SaysTheLengthOnceAndNeverWithout204) {
  EXPECT_EQ(written(head(200, {{"content-length", "2"}, {"content-length", "9"}})),
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n");
  EXPECT_EQ(written(head(204, {{"content-length", "0"}})), "HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_EQ(written(head(304, {{"content-length", "7"}})), "HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n\r\n");
}

TEST_F(Http1Response, SaysOnceThatTheConnectionCloses) {
  EXPECT_EQ(written(head(200, {{"a", "b"}}), Framing::chunked, After::close),
            "HTTP/1.1 200 OK\r\na: b\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n");
  EXPECT_EQ(written(head(200, {{"connection", "x, Close"}, {"a", "b"}}), Framing::none, After::close),
            "HTTP/1.1 200 OK\r\nconnection: x, Close\r\na: b\r\n\r\n");
  EXPECT_EQ(written(head(200, {{"connection", "keep-alive"}}), Framing::none, After::close),
            "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
}

TEST_F(Http1Response, TellsHttp10ThatItGoesOn) {
  EXPECT_EQ(written(head(200), Framing::none, After::go_on_said), "HTTP/1.1 200 OK\r\nconnection: keep-alive\r\n\r\n");
  EXPECT_EQ(written(head(200, {{"connection", "Keep-Alive"}}), Framing::none, After::go_on_said),
            "HTTP/1.1 200 OK\r\nconnection: Keep-Alive\r\n\r\n");
}

TEST_F(Http1Response, FramesByVersionStatusAndMethod) {
  RequestHead get{.method = "GET", .target = "/", .protocol = {}, .headers = {}};
  RequestHead old = get;
  old.version = Version::http10;
  RequestHead only_head = get;
  only_head.method = "HEAD";
  const ResponseHead sized = head(200, {{"content-length", "1"}});
  EXPECT_EQ(framing_of(get, head(200)), Framing::chunked);
  EXPECT_EQ(framing_of(get, sized), Framing::length);
  EXPECT_EQ(framing_of(old, head(200)), Framing::close);
  EXPECT_EQ(framing_of(old, sized), Framing::length);
  EXPECT_EQ(framing_of(only_head, sized), Framing::none);
  for (int status : {103, 204, 304}) EXPECT_EQ(framing_of(get, head(status)), Framing::none);
}

TEST_F(Http1Response, WritesChunksInHexAndTrailersAfterTheLast) {
  std::string text;
  append_chunk_size(text, 0xabc);
  EXPECT_EQ(text, "abc\r\n");
  Headers trailers;
  trailers.add("Grpc-Status", "0");
  text.clear();
  append_last_chunk(text, trailers);
  EXPECT_EQ(text, "0\r\ngrpc-status: 0\r\n\r\n");
}

TEST_F(Http1Response, AnswersForItself) {
  std::string text;
  append_answer(text, world.host, 400, Body::sent);
  EXPECT_EQ(text,
            "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 30\r\n"
            "connection: close\r\n\r\nInvalid HTTP request received.");
  text.clear();
  append_answer(text, world.host, 503, Body::left_out);
  EXPECT_EQ(text,
            "HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 19\r\n"
            "connection: close\r\n\r\n");
}

TEST_F(Http1Response, WritesAnInterimAnswerWithoutDefaults) {
  world.host.server_header = true;
  std::string text;
  append_interim(text, head(103, {{"link", "</a>"}, {"content-length", "3"}}));
  EXPECT_EQ(text, "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n");
}

}  // namespace
}  // namespace tricorn
