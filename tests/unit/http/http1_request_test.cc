#include "http/http1_request.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <utility>

namespace tricorn {
namespace {

using Fields = std::initializer_list<std::pair<std::string_view, std::string_view>>;

RequestHead request(Fields fields, std::string target = "/", std::string method = "GET",
                    Version version = Version::http11) {
  RequestHead head{
      .method = std::move(method), .target = std::move(target), .protocol = {}, .version = version, .headers = {}};
  for (const auto& [name, value] : fields) head.headers.add(name, value);
  return head;
}

int refusal(RequestHead head) {
  const auto terms = read_terms(head);
  return terms ? 0 : terms.error();
}

RequestTerms terms(RequestHead head) { return read_terms(head).value(); }

TEST(Http1Request, NeedsOneValidHost) {
  EXPECT_EQ(refusal(request({{"host", "a"}})), 0);
  EXPECT_EQ(refusal(request({{"host", ""}})), 0);
  EXPECT_EQ(refusal(request({})), 400);
  EXPECT_EQ(refusal(request({{"host", "a"}, {"host", "a"}})), 400);
  EXPECT_EQ(refusal(request({{"host", "a b"}})), 400);
  EXPECT_EQ(refusal(request({{"host", "u@a"}})), 400);
}

TEST(Http1Request, NeedsNoHostInHttp10) {
  EXPECT_EQ(refusal(request({}, "/", "GET", Version::http10)), 0);
  EXPECT_EQ(refusal(request({{"host", "a"}, {"host", "b"}}, "/", "GET", Version::http10)), 400);
}

TEST(Http1Request, TakesChunkedOnceAndAlone) {
  const auto coded = [](std::string_view value) {
    return refusal(request({{"host", "a"}, {"transfer-encoding", value}}));
  };
  EXPECT_EQ(coded("chunked"), 0);
  EXPECT_EQ(coded("ChunKed"), 0);
  EXPECT_EQ(coded("gzip, chunked"), 501);
  for (std::string_view bad :
       {"", "identity", "gzip", "chunked, gzip", "chunked, chunked", "chunked;q=1", "\"chunked\""})
    EXPECT_EQ(coded(bad), 400) << bad;
  EXPECT_EQ(refusal(request({{"host", "a"}, {"transfer-encoding", "chunked"}, {"transfer-encoding", "chunked"}})), 400);
  EXPECT_EQ(refusal(request({{"host", "a"}, {"transfer-encoding", "gzip"}, {"transfer-encoding", "chunked"}})), 501);
  EXPECT_EQ(refusal(request({{"host", "a"}, {"transfer-encoding", "chunked"}, {"content-length", "0"}})), 400);
  EXPECT_EQ(refusal(request({{"transfer-encoding", "chunked"}}, "/", "POST", Version::http10)), 400);
}

TEST(Http1Request, ReadsTheLength) {
  EXPECT_EQ(terms(request({{"host", "a"}})).length, std::nullopt);
  EXPECT_EQ(terms(request({{"host", "a"}, {"content-length", "5"}})).length, 5u);
  EXPECT_EQ(refusal(request({{"host", "a"}, {"content-length", "5, 5"}})), 400);
}

TEST(Http1Request, KeepsAliveAsTheOptionsSay) {
  const auto keeps = [](Version version, std::string_view options) {
    return terms(request({{"host", "a"}, {"connection", options}}, "/", "GET", version)).keep_alive;
  };
  EXPECT_TRUE(keeps(Version::http11, ""));
  EXPECT_TRUE(keeps(Version::http11, "closed"));
  for (std::string_view options : {"close", "Close", "keep-alive, close", "te,CLOSE"})
    EXPECT_FALSE(keeps(Version::http11, options)) << options;
  EXPECT_FALSE(keeps(Version::http10, ""));
  EXPECT_TRUE(keeps(Version::http10, "Keep-Alive"));
  EXPECT_FALSE(keeps(Version::http10, "keep-alive, close"));
  EXPECT_FALSE(terms(request({{"host", "a"}, {"connection", "te"}, {"connection", "close"}})).keep_alive);
}

TEST(Http1Request, TakesAbsoluteForm) {
  struct Row {
    std::string_view target, origin, host;
  };
  for (const Row& row : {Row{"http://b/abs?q", "/abs?q", "b"}, Row{"HTTPS://b:1", "/", "b:1"},
                         Row{"http://b?q", "/?q", "b"}, Row{"http://[::1]/", "/", "[::1]"}}) {
    RequestHead head = request({{"x", "1"}, {"host", "a"}}, std::string{row.target});
    ASSERT_TRUE(read_terms(head)) << row.target;
    EXPECT_EQ(head.target, row.origin);
    EXPECT_EQ(head.headers[1].value, row.host);
  }
  RequestHead options = request({{"host", "a"}}, "http://b", "OPTIONS");
  ASSERT_TRUE(read_terms(options));
  EXPECT_EQ(options.target, "*");
}

TEST(Http1Request, RefusesOtherTargets) {
  for (std::string_view bad : {"http:///x", "http://u:p@b/", "ftp://b/", "index.html", "http://b:x/", "*", "/a#b", ""})
    EXPECT_EQ(refusal(request({{"host", "a"}}, std::string{bad})), 400) << bad;
  EXPECT_EQ(refusal(request({{"host", "a"}}, "*", "OPTIONS")), 0);
  EXPECT_EQ(refusal(request({{"host", "b:1"}}, "b:1", "CONNECT")), 501);
}

TEST(Http1Request, ReadsExpectationsAndUpgrades) {
  EXPECT_TRUE(terms(request({{"host", "a"}, {"expect", "100-Continue"}})).expects_continue);
  EXPECT_FALSE(terms(request({{"host", "a"}, {"expect", "banana"}})).expects_continue);
  EXPECT_FALSE(terms(request({{"expect", "100-continue"}}, "/", "POST", Version::http10)).expects_continue);
  EXPECT_TRUE(terms(request({{"host", "a"}, {"connection", "x, Upgrade"}, {"upgrade", "h2c"}})).upgrade);
  EXPECT_FALSE(terms(request({{"host", "a"}, {"upgrade", "h2c"}})).upgrade);
  EXPECT_FALSE(terms(request({{"connection", "upgrade"}, {"upgrade", "h2c"}}, "/", "GET", Version::http10)).upgrade);
}

TEST(Http1Request, IsPatientWithStreamingCalls) {
  const auto patient = [](std::string_view type) {
    return terms(request({{"host", "a"}, {"content-type", type}})).patient;
  };
  EXPECT_TRUE(patient("application/connect+proto"));
  EXPECT_TRUE(patient("Application/gRPC-web+proto"));
  EXPECT_FALSE(patient("application/json"));
  EXPECT_FALSE(patient("app"));
}

}  // namespace
}  // namespace tricorn
