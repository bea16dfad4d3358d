#include "http/http1.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "testing.h"

namespace tricorn {
namespace {

using Event = RequestParser::Event;

// Everything a parser made of some input: one line a message, and the status it ended with.
struct Parsed {
  std::vector<std::string> messages;
  int status = 0;

  bool operator==(const Parsed&) const = default;
};

std::ostream& operator<<(std::ostream& to, const Parsed& parsed) {
  for (const auto& message : parsed.messages) to << message << '\n';
  return to << "status " << parsed.status;
}

Parsed parse(const testing::Cut& cut, const Limits& limits = {}) {
  RequestParser parser{limits};
  Parsed parsed;
  for (std::string_view input : cut) {
    while (true) {
      const auto step = parser.next(input);
      input.remove_prefix(step.used);
      if (step.event == Event::none) break;
      if (step.event == Event::head) {
        const RequestHead head = parser.take_head();
        std::string line = head.method + ' ' + head.target + ' ' + std::string{to_string(head.version)};
        for (Field field : head.headers) line.append(" ").append(field.name).append("=").append(field.value);
        parsed.messages.push_back(line + " |");
      }
      if (step.event == Event::body) parsed.messages.back() += step.body;
      if (step.event == Event::end) parsed.messages.back() += '|';
      if (step.event != Event::bad) continue;
      parsed.status = parser.status();
      return parsed;
    }
  }
  return parsed;
}

// The same whatever the cuts, and with a neighbour behind it.
void expect(std::string_view bytes, const std::vector<std::string>& messages, int status = 0) {
  for (const auto& cut : testing::every_cut(bytes)) ASSERT_EQ(parse(cut), (Parsed{messages, status})) << bytes;
  if (status != 0) return;
  const std::string both = std::string{bytes} + "GET /next HTTP/1.1\r\n\r\n";
  auto with_next = messages;
  with_next.emplace_back("GET /next 1.1 ||");
  for (const auto& cut : testing::every_cut(both)) ASSERT_EQ(parse(cut), (Parsed{with_next, 0})) << both;
}

TEST(Http1Parser, ReadsAHead) {
  expect("GET /a?b HTTP/1.1\r\nHost: x\r\nX-Probe: \t a b \t \r\nEmpty:\r\n\r\n",
         {"GET /a?b 1.1 host=x x-probe=a b empty= ||"});
  expect("\r\nGET / HTTP/1.0\r\n\r\n", {"GET / 1.0 ||"});
  expect("GET / HTTP/1.1\r\nX: caf\xe9\r\n\r\n", {"GET / 1.1 x=caf\xe9 ||"});
}

TEST(Http1Parser, ReadsABodyByLength) {
  expect("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", {"POST / 1.1 content-length=5 |hello|"});
  expect("POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", {"POST / 1.1 content-length=0 ||"});
}

TEST(Http1Parser, ReadsAChunkedBodyAndDropsItsTrailers) {
  expect(
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5;a=b;c=\"d;e\"\r\nhello\r\n00006\r\n world\r\n0;z\r\nX-T: 1\r\nHost: evil\r\n\r\n",
      {"POST / 1.1 transfer-encoding=chunked |hello world|"});
}

TEST(Http1Parser, GoesOnAfterCloseUpgradeAndConnect) {
  // What these mean for the connection is the session's to say.
  expect("GET / HTTP/1.1\r\nConnection: close\r\n\r\n", {"GET / 1.1 connection=close ||"});
  expect("GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: x/9\r\n\r\n",
         {"GET / 1.1 connection=Upgrade upgrade=x/9 ||"});
  expect("POST / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: x\r\nContent-Length: 2\r\n\r\nhi",
         {"POST / 1.1 connection=Upgrade upgrade=x content-length=2 |hi|"});
  expect("CONNECT a:80 HTTP/1.1\r\n\r\n", {"CONNECT a:80 1.1 ||"});
}

TEST(Http1Parser, KnowsVersions) {
  expect("GET / HTTP/2.0\r\n\r\n", {}, 505);
  expect("GET / HTTP/9.9\r\n", {}, 505);
  expect("GET / HTTP/1.2\r\n", {}, 505);
  expect("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {}, 505);
  for (std::string_view bad : {"GET /\r\n\r\n", "GET / http/1.1\r\n", "GET / HTTP/1.\r\n", "GET / HTTP/1.10\r\n",
                               "GET / HTTP/1.1 x\r\n", "GET / RTSP/1.0\r\n\r\n", "SOURCE / ICE/1.0\r\n\r\n"})
    expect(bad, {}, 400);
}

TEST(Http1Parser, RefusesWhatIsNoRequest) {
  for (std::string_view bad : {"GE(T / HTTP/1.1\r\n",
                               " GET / HTTP/1.1\r\n",
                               "GET /a b HTTP/1.1\r\n",
                               "GET /\x01 HTTP/1.1\r\n",
                               "GET index HTTP/1.1\r\n",
                               "SSH-2.0\r\n\r\n",
                               "\x16\x03\x01",
                               "GET / HTTP/1.1\rHost: a\r",
                               "GET / HTTP/1.1\nHost: a\n\n",
                               "GET / HTTP/1.1\r\nBad\r\n",
                               "GET / HTTP/1.1\r\n: v\r\n",
                               "GET / HTTP/1.1\r\nA B: v\r\n",
                               "GET / HTTP/1.1\r\nA : v\r\n",
                               "GET / HTTP/1.1\r\nA\t: v\r\n",
                               "GET / HTTP/1.1\r\nX\xe9: v\r\n",
                               "GET / HTTP/1.1\r\nA: b\rc\r\n",
                               "GET / HTTP/1.1\r\nA: b\nC: d\r\n",
                               "GET / HTTP/1.1\r\nA: b\r\n c\r\n",
                               "GET / HTTP/1.1\r\n A: b\r\n",
                               "GET / HTTP/1.1\r\nA: b\x01\r\n",
                               "GET / HTTP/1.1\r\nA: b\r\n\rX"})
    expect(bad, {}, 400);
  expect(std::string_view{"GET / HTTP/1.1\r\nA: b\0\r\n", 22}, {}, 400);
}

TEST(Http1Parser, RefusesLengthsThatAreNotOneNumber) {
  for (std::string_view bad : {"+5", "-5", "0x5", "5a", "5 5", "0_5", "", "5, 6", "5.0", "18446744073709551621"})
    expect("POST / HTTP/1.1\r\nContent-Length: " + std::string{bad} + "\r\n\r\n", {}, 400);
  expect("POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n", {}, 400);
  expect("POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n", {}, 400);
  expect("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n", {}, 400);
}

TEST(Http1Parser, RefusesBadChunks) {
  const std::string head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (std::string_view bad : {"0x5\r\n", "+5\r\n", "0_5\r\n", " 5\r\n", "5 \r\n", "Z\r\n", "\r\n", ";a\r\n",
                               "5\nhello", "5;\nhello", "5;a\rb\r\n", "5\r\r\n", "10000000000000005\r\n", "0\n\r\n"})
    expect(head + std::string{bad}, {"POST / 1.1 transfer-encoding=chunked |"}, 400);
  for (std::string_view bad : {"2\r\nhiXX", "2\r\nhi\n0\r\n\r\n", "2\r\nhi\r\n0\r\nXX"})
    expect(head + std::string{bad} + "GET /smuggled HTTP/1.1\r\n\r\n", {"POST / 1.1 transfer-encoding=chunked |hi"},
           400);
}

TEST(Http1Parser, BoundsTheHeadAsSoonAsALimitIsPassed) {
  const Limits limits{.request_line = 20, .header_size = 30, .header_count = 3};
  const auto status = [&](const std::string& bytes) { return parse({bytes}, limits).status; };
  EXPECT_EQ(status("GET /" + std::string(19, 'a')), 0);
  EXPECT_EQ(status("GET /" + std::string(20, 'a')), 414);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nA: " + std::string(29, 'a')), 0);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nA: " + std::string(30, 'a')), 431);
  EXPECT_EQ(status("GET / HTTP/1.1\r\n" + std::string(31, 'a')), 431);
  EXPECT_EQ(status("GET / HTTP/1.1\r\na: 1\r\nb: 2\r\nc: 3\r\n\r\n"), 0);
  EXPECT_EQ(status("GET / HTTP/1.1\r\na: 1\r\nb: 2\r\nc: 3\r\nd: 4\r\n\r\n"), 431);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nA:" + std::string(100, ' ')), 431);
  EXPECT_EQ(status(std::string(100, '\n')), 431);
}

TEST(Http1Parser, BoundsExtensionsAndTrailersOfAMessage) {
  const Limits limits{.chunk_ext = 10, .trailer_size = 10};
  const std::string head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(parse({head, "1;abcde\r\na\r\n1;abcde\r\na\r\n0\r\n\r\n"}, limits).status, 0);
  EXPECT_EQ(parse({head, "1;abcde\r\na\r\n1;abcdef\r\na\r\n"}, limits).status, 413);
  EXPECT_EQ(parse({head, "0\r\nabcde: fghij\r\n\r\n"}, limits).status, 0);
  EXPECT_EQ(parse({head, "0\r\nabcde: fghi\r\nx: y"}, limits).status, 431);
}

TEST(Http1Parser, KnowsAHeadRequestBeforeItsEnd) {
  const Limits limits;
  RequestParser parser{limits};
  parser.next("HEAD / HTTP/1.1\r\nBad");
  EXPECT_TRUE(parser.is_head());
}

}  // namespace
}  // namespace tricorn
