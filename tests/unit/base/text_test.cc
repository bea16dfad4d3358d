#include "base/text.h"

#include <gtest/gtest.h>

#include <vector>

namespace tricorn {
namespace {

TEST(Text, ComparesIgnoringCase) {
  EXPECT_TRUE(equals_ignoring_case("Keep-Alive", "keep-aLIVE"));
  EXPECT_FALSE(equals_ignoring_case("close", "closed"));
  EXPECT_FALSE(equals_ignoring_case("[", "{"));  // differ by the same bit as letters do
  EXPECT_EQ(lower("X-Ab\xc3\x84"), "x-ab\xc3\x84");
}

TEST(Text, TrimsOptionalWhiteSpaceOnly) {
  EXPECT_EQ(trim(" \t a b \t"), "a b");
  EXPECT_EQ(trim("\r\na"), "\r\na");
  EXPECT_EQ(trim(" \t "), "");
}

TEST(Text, KnowsTokens) {
  EXPECT_TRUE(is_token("!#$%&'*+-.^_`|~aZ09"));
  for (std::string_view bad : {"", "a b", "a:", "a(", "a\x80", "\x7f", "a\"", "a,"}) EXPECT_FALSE(is_token(bad)) << bad;
}

TEST(Text, KnowsFieldValues) {
  EXPECT_TRUE(is_field_value("a\tb \xff"));
  EXPECT_TRUE(is_field_value(""));
  for (std::string_view bad : {std::string_view{"a\rb"}, std::string_view{"a\nb"}, std::string_view{"a\0b", 3},
                               std::string_view{"\x01"}, std::string_view{"\x7f"}})
    EXPECT_FALSE(is_field_value(bad));
}

TEST(Text, VisitsTheElementsOfAList) {
  std::vector<std::string_view> seen;
  each_in_list(" a ,, b\t,c d,", [&](std::string_view item) { seen.push_back(item); });
  EXPECT_EQ(seen, (std::vector<std::string_view>{"a", "b", "c d"}));
  EXPECT_TRUE(list_has("te, Close", "close"));
  EXPECT_FALSE(list_has("closed", "close"));
  EXPECT_FALSE(list_has("", "close"));
}

TEST(Text, ParsesDecimalNumbersOnly) {
  EXPECT_EQ(parse_number("0"), 0u);
  EXPECT_EQ(parse_number("010"), 10u);
  EXPECT_EQ(parse_number("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(parse_number("18446744073709551616").error().fault, Fault::too_large);
  EXPECT_EQ(parse_number("100", 100), 100u);
  EXPECT_EQ(parse_number("101", 100).error().fault, Fault::too_large);
  for (std::string_view bad : {"", "+5", "-5", "0x5", "5a", "5 5", " 5", "5_0"})
    EXPECT_EQ(parse_number(bad).error().fault, Fault::protocol) << bad;
}

TEST(Text, DecodesPercentAsUrllibDoes) {
  EXPECT_EQ(percent_decode("a%20b%2Fc%c3%B6"), "a b/c\xc3\xb6");
  EXPECT_EQ(percent_decode("%"), "%");
  EXPECT_EQ(percent_decode("%4"), "%4");
  EXPECT_EQ(percent_decode("%zz%41"), "%zzA");
  EXPECT_EQ(percent_decode("%25C3"), "%C3");  // once
  EXPECT_EQ(percent_decode("%00"), std::string(1, '\0'));
  EXPECT_EQ(percent_decode("+"), "+");
}

TEST(Text, KnowsHosts) {
  for (std::string_view good : {"a", "localhost:80", "a.b-c_d", "127.0.0.1", "[::1]", "[::1]:8080", "[::ffff:1.2.3.4]",
                                "a:", "xn--bcher-kva.example:65535", "a%20b"})
    EXPECT_TRUE(is_host(good)) << good;
  for (std::string_view bad : {"", "a b", "a/b", "u@a", "a:b", "[::1", "::1", "a:80:80", "a:123456", ":80", "[]",
                               "[::1]x", "a\x01", "a?b", "a#b", "a\\b", "[g::1]", "\xc3\xb6"})
    EXPECT_FALSE(is_host(bad)) << bad;
}

}  // namespace
}  // namespace tricorn
