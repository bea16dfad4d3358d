#include "rpc/connect.h"

#include <gtest/gtest.h>

namespace tricorn::rpc {
namespace {

using namespace std::string_literals;

TEST(RpcConnect, FindsQueryValuesAsParseQsDoes) {
  EXPECT_EQ(query_value("a=1&b=2&a=3", "a"), "1");
  EXPECT_EQ(query_value("a=1&b=2=3", "b"), "2=3");
  EXPECT_EQ(query_value("&&=v&a", ""), "v");
  EXPECT_EQ(query_value("a", "a"), "");
  EXPECT_EQ(query_value("a=", "a"), "");
  EXPECT_EQ(query_value("x=1;a=2", "a"), std::nullopt);
  EXPECT_EQ(query_value("%61+b=%31+%2B+%zz%", "a b"), "1 + %zz%");
  EXPECT_EQ(query_value("", "a"), std::nullopt);
  EXPECT_EQ(query_value("", ""), std::nullopt);
}

TEST(RpcConnect, ReplacesWhatIsNotUtf8AsPythonDoes) {
  const std::string_view r = "\xef\xbf\xbd";
  const std::string one{r}, two = one + one, three = two + one;
  EXPECT_EQ(query_value("a=%C3%A9%E2%82%AC%F0%9F%98%80", "a"), "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(query_value("a=%FF", "a"), one);
  EXPECT_EQ(query_value("a=%C0%80", "a"), two);
  EXPECT_EQ(query_value("a=%E2%82", "a"), one);
  EXPECT_EQ(query_value("a=%E2%82x", "a"), one + "x");
  EXPECT_EQ(query_value("a=%ED%A0%80", "a"), three);
  EXPECT_EQ(query_value("a=%F0%9F%98", "a"), one);
  EXPECT_EQ(query_value("a=%F4%90%80%80", "a"), three + one);
}

TEST(RpcConnect, ReadsTheRequestOfAGet) {
  const auto plain = read_get("connect=v1&encoding=json&message=%7B%7D");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->message, "{}");
  EXPECT_EQ(plain->encoding, "identity");
  const auto binary = read_get("message=-_8&base64=1&compression=gzip");
  ASSERT_TRUE(binary);
  EXPECT_EQ(binary->message, "\xfb\xff");
  EXPECT_EQ(binary->encoding, "gzip");
  EXPECT_EQ(read_get("message=Zg&base64=true&compression=")->message, "Zg");
  EXPECT_EQ(read_get("message=Zg&base64=true&compression=")->encoding, "identity");
  EXPECT_EQ(read_get("message=&base64=1")->message, "");
  EXPECT_EQ(read_get("base64=1").error(),
            (RpcError{Code::invalid_argument, "'message' parameter is required for GET requests"}));
  EXPECT_EQ(read_get("message=A&base64=1").error(), (RpcError{Code::invalid_argument, "Invalid base64 encoding"}));
}

TEST(RpcConnect, DecodesBase64AsPythonDoes) {
  EXPECT_EQ(base64url_decode("Zm9v"), "foo");
  EXPECT_EQ(base64url_decode("Zm9vYg=="), "foob");
  EXPECT_EQ(base64url_decode("Zm9vYmE"), "fooba");
  EXPECT_EQ(base64url_decode("-_+/"), "\xfb\xff\xbf");
  EXPECT_EQ(base64url_decode("Z m.9!v"), "foo");
  EXPECT_EQ(base64url_decode("Zg==Zm9v"), "f");
  EXPECT_EQ(base64url_decode("Zg=Zm9v"), "f\x06\x66\xf6");
  EXPECT_EQ(base64url_decode("=Z=g"), "f");
  EXPECT_EQ(base64url_decode(""), "");
  EXPECT_EQ(base64url_decode("Z"), std::nullopt);
  EXPECT_EQ(base64url_decode("Zm9vZ"), std::nullopt);
  EXPECT_EQ(base64url_decode("Zm9v\xc3\xa9"), std::nullopt);
  EXPECT_EQ(base64url_decode("Zg==\xc3\xa9"), std::nullopt);
}

TEST(RpcConnect, WritesErrorsAsJsonDumpsDoes) {
  EXPECT_EQ(error_json({Code::not_found, ""}), R"({"code": "not_found", "message": ""})");
  EXPECT_EQ(error_json({Code::internal, "\"\\/\b\f\n\r\t\0\x1f\x7f\xc3\xa9"s}, R"([{"type": "a", "value": "b"}])"),
            "{\"code\": \"internal\", \"message\": \"\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\x7f\xc3\xa9\", "
            "\"details\": [{\"type\": \"a\", \"value\": \"b\"}]}");
}

TEST(RpcConnect, WritesTheEndOfAStream) {
  Headers trailers;
  EXPECT_EQ(end_stream_json(trailers), "{}");
  EXPECT_EQ(end_stream_json(trailers, error_json({Code::aborted, "x"})),
            R"({"error": {"code": "aborted", "message": "x"}})");
  trailers.add("a", "1");
  trailers.add("b", "\"");
  trailers.add("A", "2");
  EXPECT_EQ(end_stream_json(trailers), R"({"metadata": {"a": ["1", "2"], "b": ["\""]}})");
  EXPECT_EQ(end_stream_json(trailers, "{}"), R"({"metadata": {"a": ["1", "2"], "b": ["\""]}, "error": {}})");
}

}  // namespace
}  // namespace tricorn::rpc
