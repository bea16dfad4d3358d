#include "rpc/grpc.h"

#include <gtest/gtest.h>

namespace tricorn::rpc {
namespace {

Headers fields(std::initializer_list<Field> list) {
  Headers headers;
  for (Field field : list) headers.add(field.name, field.value);
  return headers;
}

std::string text(const Headers& headers) { return trailer_block(headers).value(); }

TEST(RpcGrpc, EndsWellWithTheApplicationsTrailers) {
  EXPECT_EQ(text(ok_trailers({})), "grpc-status: 0\r\n");
  EXPECT_EQ(text(ok_trailers(fields({{"a", "1"}, {"grpc-status", "9"}, {"a", "2"}, {"grpc-message", "kept"}}))),
            "a: 1\r\na: 2\r\ngrpc-message: kept\r\ngrpc-status: 0\r\n");
}

TEST(RpcGrpc, SaysHowACallFailed) {
  EXPECT_EQ(text(status_trailers({}, {Code::canceled, ""})), "grpc-status: 1\r\n");
  EXPECT_EQ(text(status_trailers(fields({{"x", "y"}, {"grpc-message", "own"}}),
                                 {Code::unauthenticated, "no, \xc3\xa9!"}, std::string_view{"\0\x01\xff\xfe", 4})),
            "x: y\r\ngrpc-status: 16\r\ngrpc-message: no%2C%20%C3%A9%21\r\ngrpc-status-details-bin: AAH//g\r\n");
}

TEST(RpcGrpc, EncodesEveryOctetAsUrllibDoes) {
  std::string all, expected;
  for (int octet = 0; octet < 256; ++octet) {
    const char c = static_cast<char>(octet);
    all += c;
    char hex[4];
    std::snprintf(hex, sizeof hex, "%%%02X", octet);
    const bool plain = octet < 128 && (std::isalnum(octet) || std::string_view{"_.-~"}.contains(c));
    expected += plain ? std::string{c} : hex;
  }
  EXPECT_EQ(percent_encode(all), expected);
}

TEST(RpcGrpc, EncodesBase64WithoutPadding) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg");
  EXPECT_EQ(base64("fo"), "Zm8");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg");
  EXPECT_EQ(base64("\xfb\xff\xbf"), "+/+/");
}

TEST(RpcGrpc, LetsNoTrailerBreakALine) {
  for (Field bad : {Field{"a", "1\r\ngrpc-status: 0"}, Field{"a", "\n"}, Field{"a", {"\0", 1}}, Field{"a b", "1"},
                    Field{"a:", "1"}, Field{"", "1"}, Field{"a\r\nb", "1"}})
    EXPECT_EQ(trailer_block(fields({{"ok", "1"}, bad})).error().fault, Fault::value) << bad.name;
  EXPECT_TRUE(trailer_block(fields({{"a", "tab\t \xc3\xa9"}})));
}

}  // namespace
}  // namespace tricorn::rpc
