#include "http/http2_request.h"

#include <gtest/gtest.h>

#include "http2_client.h"

namespace tricorn {
namespace {

using namespace testing;

std::expected<RequestHead, int> build(const Fields& fields, const Limits& limits = {}) {
  RequestBuilder builder{limits};
  builder.begin(RequestBuilder::Part::head);
  for (const auto& [name, value] : fields) builder.field(name, value);
  return builder.finish();
}

TEST(Http2Request, PutsTheAuthorityFirstAsHost) {
  const auto head =
      build({{":method", "GET"}, {":scheme", "https"}, {":authority", "h:1"}, {":path", "/a?b"}, {"x", "y"}});
  ASSERT_TRUE(head);
  EXPECT_EQ(head->method, "GET");
  EXPECT_EQ(head->target, "/a?b");
  EXPECT_EQ(head->version, Version::http2);
  ASSERT_EQ(head->headers.size(), 2u);
  EXPECT_EQ(head->headers[0].name, "host");
  EXPECT_EQ(head->headers[0].value, "h:1");
  EXPECT_EQ(head->headers[1].name, "x");
}

TEST(Http2Request, KeepsHostWithoutAnAuthority) {
  const auto head = build({{":method", "GET"}, {":path", "/"}, {"x", "y"}, {"host", "h"}});
  ASSERT_TRUE(head);
  EXPECT_EQ(head->headers[1].value, "h");
  EXPECT_EQ(head->headers.size(), 2u);
}

TEST(Http2Request, DropsAHostThatSaysTheSame) {
  const auto head = build(testing::head("GET", "/", {{"x", "y"}, {"host", "A"}}));
  ASSERT_TRUE(head);
  EXPECT_EQ(head->headers.count("host"), 1u);
  EXPECT_EQ(*head->headers.find("host"), "a");
}

TEST(Http2Request, JoinsCookieCrumbsInThePlaceOfTheFirst) {
  const auto head =
      build(testing::head("GET", "/", {{"cookie", "a=1"}, {"x", "y"}, {"cookie", "b=2"}, {"cookie", "c"}}));
  ASSERT_TRUE(head);
  EXPECT_EQ(head->headers[1].name, "cookie");
  EXPECT_EQ(head->headers[1].value, "a=1; b=2; c");
  EXPECT_EQ(head->headers.count("cookie"), 1u);
  EXPECT_EQ(head->headers[2].value, "y");
}

TEST(Http2Request, RefusesWhatHttp1CouldNotCarry) {
  struct Row {
    int status;
    Fields fields;
  };
  const Row rows[] = {
      {0, head("OPTIONS", "*")},
      {0, head("GET", "/\xc3\xa9?%zz")},
      {400, head("GET", "*")},
      {400, head("GET", "index.html")},
      {400, head("GET", "/a b")},
      {400, head("GET", "/a\r\nb")},
      {400, head("GET", "")},
      {400, head("GET / HTTP/1.1", "/")},
      {501, head("CONNECT", "/")},
      {400, head("GET", "/", {{"host", "other"}})},
      {400, {{":method", "GET"}, {":path", "/"}}},
      {400, {{":method", "GET"}, {":path", "/"}, {"host", "a"}, {"host", "a"}}},
      {400, {{":method", "GET"}, {":path", "/"}, {"host", "a b"}}},
      {400, {{":method", "GET"}, {":path", "/"}, {":authority", "u@a"}}},
      {400, {{":method", "GET"}, {":path", "/"}, {":authority", ""}}},
      {414, head("GET", "/" + std::string(16'384, 'x'))},
  };
  for (const Row& row : rows) {
    const auto made = build(row.fields);
    EXPECT_EQ(made ? 0 : made.error(), row.status) << row.fields[0].second << " " << row.fields.back().second;
  }
}

TEST(Http2Request, CountsCrumbsAsOneField) {
  Fields fields = head("GET", "/");
  for (int i = 0; i < 500; ++i) fields.emplace_back("cookie", "c=" + std::to_string(i));
  EXPECT_TRUE(build(fields));
}

TEST(Http2Request, IsBoundedByCountAndBySize) {
  Limits limits;
  RequestBuilder builder{limits};
  builder.begin(RequestBuilder::Part::head);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(builder.field("x", ""), RequestBuilder::Size::fits);
  for (int i = 0; i < 300; ++i) EXPECT_EQ(builder.field("x", ""), RequestBuilder::Size::over);
  EXPECT_EQ(builder.field("x", ""), RequestBuilder::Size::absurd);
  EXPECT_EQ(builder.finish().error(), 431);

  builder.begin(RequestBuilder::Part::head);
  const std::string big(40'000, 'b');
  EXPECT_EQ(builder.field("x", big), RequestBuilder::Size::fits);
  EXPECT_EQ(builder.field("x", big), RequestBuilder::Size::over);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(builder.field("x", big), RequestBuilder::Size::over);
  EXPECT_EQ(builder.field("x", big), RequestBuilder::Size::absurd);
}

}  // namespace
}  // namespace tricorn
