#include "http/head.h"

#include <gtest/gtest.h>

namespace tricorn {
namespace {

TEST(Headers, KeepOrderAndDuplicatesAndLowerNames) {
  Headers headers;
  headers.add("X-Dup", "1");
  headers.add("Other", "");
  headers.add("x-dup", "2");
  ASSERT_EQ(headers.size(), 3u);
  EXPECT_EQ(headers[0].name, "x-dup");
  EXPECT_EQ(headers[1].value, "");
  EXPECT_EQ(headers[2].value, "2");
  EXPECT_EQ(headers.find("x-dup"), "1");
  EXPECT_EQ(headers.count("x-dup"), 2u);
  EXPECT_FALSE(headers.has("X-Dup"));
}

TEST(Headers, GrowFromPiecesAndTrimTheValue) {
  Headers headers;
  headers.append_name("Ho");
  headers.append_name("ST");
  headers.append_value("a ");
  headers.append_value("b \t");
  headers.append_value(" ");
  headers.commit();
  headers.append_name("empty");
  headers.commit();
  EXPECT_EQ(headers[0].name, "host");
  EXPECT_EQ(headers[0].value, "a b");
  EXPECT_EQ(headers[1].value, "");
}

TEST(Headers, SetTheFirstOrAddInFront) {
  Headers headers;
  headers.add("a", "1");
  headers.add("host", "old");
  headers.set_first("host", "longer than before");
  EXPECT_EQ(headers[1].value, "longer than before");
  headers.add("b", "2");
  EXPECT_EQ(headers[2].value, "2");
  headers.set_first("first", "0");
  EXPECT_EQ(headers[0].name, "first");
  EXPECT_EQ(headers[1].name, "a");
  EXPECT_EQ(headers.size(), 4u);
}

TEST(Headers, AreEmptyAfterClear) {
  Headers headers;
  headers.add("a", "1");
  headers.append_name("unfinished");
  headers.clear();
  EXPECT_TRUE(headers.empty());
  EXPECT_EQ(headers.octets(), 0u);
  headers.add("b", "2");
  EXPECT_EQ(headers[0].name, "b");
}

TEST(RequestHead, SplitsTheTargetAtTheFirstQuestionMark) {
  RequestHead head;
  head.target = "/a%20b?x=1?y";
  EXPECT_EQ(head.path(), "/a%20b");
  EXPECT_EQ(head.query(), "x=1?y");
  head.target = "/a";
  EXPECT_EQ(head.query(), "");
  head.target = "/?";
  EXPECT_EQ(head.path(), "/");
  EXPECT_EQ(head.query(), "");
}

TEST(ReasonPhrase, IsEmptyForUnknownCodes) {
  EXPECT_EQ(reason_phrase(404), "Not Found");
  EXPECT_EQ(reason_phrase(599), "");
  EXPECT_EQ(reason_phrase(-1), "");
}

}  // namespace
}  // namespace tricorn
