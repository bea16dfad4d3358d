#include <gtest/gtest.h>

#include "http/session.h"
#include "testing.h"

namespace tricorn {
namespace {

using testing::Cut;
using testing::every_cut;
using testing::LambdaApp;
using testing::Seen;
using testing::World;

const std::string k_get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const std::string k_ok = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const std::string k_close = "connection: close\r\n\r\n";

std::string post(std::string_view body, std::string_view fields = {}) {
  return "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         std::string{fields} + "\r\n" + std::string{body};
}
std::string ok(std::string_view body) {
  return "HTTP/1.1 200 OK\r\ncontent-length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string{body};
}

struct Http1 : ::testing::Test {
  World world{Protocol::http1};

  Session& session() { return *world.session; }
  Seen& call(std::size_t i = 0) { return *world.app.calls.at(i); }
  Exchange& exchange(std::size_t i = 0) { return *call(i).exchange; }
  // The application does nothing by itself.
  void hold() { world.app.answer = nullptr; }
  // It answers these octets in HTTP/1.1 chunks, without a length.
  void stream(std::vector<std::string> parts) {
    world.app.answer = [parts](Seen& seen, Events) {
      if (seen.exchange->send_state() != Send::idle) return;
      (void)seen.exchange->respond({});
      for (const auto& part : parts) (void)seen.exchange->write(part);
      (void)seen.exchange->finish();
      LambdaApp::leave(seen);
    };
  }
  Result<void> later(Millis by) { return session().tick(world.clock.now() + by); }
};

// --- messages ---

TEST_F(Http1, ServesARequestWhateverTheCuts) {
  const std::string bytes = post("hello", "X-A: b\r\n");
  for (const Cut& cut : every_cut(bytes)) {
    World fresh{Protocol::http1};
    for (std::string_view piece : cut) fresh.feed(piece);
    ASSERT_EQ(fresh.app.calls.size(), 1u);
    const Seen& seen = *fresh.app.calls[0];
    EXPECT_EQ(seen.method + seen.target + seen.body, "POST/phello");
    EXPECT_EQ(seen.headers.find("x-a"), "b");
    EXPECT_TRUE(seen.body_ended);
    EXPECT_EQ(fresh.out, ok("hello"));
    EXPECT_TRUE(fresh.session->idle());
    EXPECT_FALSE(fresh.session->finished());
  }
}

TEST_F(Http1, AnswersPipelinedRequestsInOrderWhateverTheCuts) {
  const std::string chunked =
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\nX-T: 1\r\n\r\n";
  const std::string all = post("one") + chunked + k_get + "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n" + post("five");
  for (const Cut& cut : every_cut(all)) {
    World fresh{Protocol::http1};
    for (std::string_view piece : cut) fresh.feed(piece);
    ASSERT_EQ(fresh.out, ok("one") + ok("two") + k_ok + k_ok + ok("five"));
    EXPECT_EQ(fresh.host.total_requests, 5u);
    EXPECT_EQ(fresh.host.requests, 0u);
  }
}

TEST_F(Http1, KeepsPipelinedRequestsBackUntilTheAnswerIsWritten) {
  hold();
  world.feed(post("one") + post("two"));
  ASSERT_EQ(world.app.calls.size(), 1u);
  LambdaApp::reply(call(), 200, "1");
  world.app.answer = [](Seen& seen, Events) { LambdaApp::echo(seen); };
  world.settle();
  EXPECT_EQ(world.out, ok("1") + ok("two"));
}

TEST_F(Http1, StreamsInChunks) {
  stream({"hello", " world"});
  world.feed(k_get + k_get);
  const std::string one = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nb\r\nhello world\r\n0\r\n\r\n";
  EXPECT_EQ(world.out, one + one);
}

TEST_F(Http1, PullsNoMoreThanItsBudget) {
  hold();
  world.feed(k_get);
  (void)exchange().respond({});
  (void)exchange().write(std::string(25, 'x'));
  world.pull(10);
  EXPECT_TRUE(session().pending());
  world.pull(10);
  (void)exchange().finish();
  EXPECT_TRUE(session().pending());
  world.pull(10);
  EXPECT_FALSE(session().pending());
  const std::string ten(10, 'x');
  EXPECT_EQ(world.out, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\na\r\n" + ten + "\r\na\r\n" + ten +
                           "\r\n5\r\nxxxxx\r\n0\r\n\r\n");
}

TEST_F(Http1, TellsTheApplicationWhenThereIsRoomAgain) {
  world.limits.write_buffer = 20;
  hold();
  world.feed(k_get);
  (void)exchange().respond({});
  (void)exchange().write(std::string(25, 'x'));
  EXPECT_FALSE(exchange().writable());
  exchange().take_events();
  world.pull(10);
  EXPECT_FALSE(has(exchange().take_events(), Event::writable));
  world.pull(10);
  EXPECT_TRUE(has(exchange().take_events(), Event::writable));
}

TEST_F(Http1, SendsTrailersAfterTheLastChunk) {
  hold();
  world.feed(k_get);
  (void)exchange().respond({});
  Headers trailers;
  trailers.add("grpc-status", "0");
  (void)exchange().finish(std::move(trailers));
  world.settle();
  EXPECT_EQ(world.out, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\ngrpc-status: 0\r\n\r\n");
}

TEST_F(Http1, SendsEarlyHintsAtOnceAndInOrder) {
  hold();
  world.feed(k_get);
  Headers link;
  link.add("link", "</a>");
  (void)exchange().inform(103, std::move(link));
  EXPECT_TRUE(world.hook.linked());
  world.settle();
  EXPECT_EQ(world.take_out(), "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n");
  LambdaApp::reply(call(), 200, "");
  world.settle();
  EXPECT_EQ(world.out, k_ok);
}

TEST_F(Http1, SendsNoBodyWithHead) {
  world.app.answer = [](Seen& seen, Events) { LambdaApp::reply(seen, 200, "hello"); };
  world.feed("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n" + k_get);
  EXPECT_EQ(world.out, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n" + ok("hello"));
}

TEST_F(Http1, SendsNoBodyWithHeadOfAStream) {
  stream({"hello"});
  world.feed("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(world.out, "HTTP/1.1 200 OK\r\n\r\n");
  EXPECT_FALSE(session().finished());
}

// --- the connection ---

TEST_F(Http1, ClosesAfterTheRequestThatSaysSo) {
  world.feed("GET / HTTP/1.1\r\nHost: a\r\nConnection: te, Close\r\n\r\n" + k_get);
  world.feed(k_get);
  EXPECT_EQ(world.out, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n" + k_close);
  EXPECT_TRUE(session().finished());
  EXPECT_EQ(world.app.calls.size(), 1u);
}

TEST_F(Http1, ClosesWhenTheApplicationSaysSo) {
  world.app.answer = [](Seen& seen, Events) {
    ResponseHead head = plain_head(500, "x");
    head.headers.add("connection", "close");
    (void)seen.exchange->respond(std::move(head));
    (void)seen.exchange->write("x");
    (void)seen.exchange->finish();
    LambdaApp::leave(seen);
  };
  world.feed(k_get + k_get);
  EXPECT_EQ(world.out,
            "HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 1\r\n" +
                k_close + "x");
  EXPECT_TRUE(session().finished());
}

TEST_F(Http1, EndsAnHttp10BodyWithTheConnection) {
  stream({"hello"});
  world.feed("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(world.out, "HTTP/1.1 200 OK\r\n" + k_close + "hello");
  EXPECT_TRUE(session().finished());
}

TEST_F(Http1, KeepsAnHttp10ConnectionThatAskedForIt) {
  world.feed("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(world.out,
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: keep-alive\r\n\r\n"
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n" +
                k_close);
  EXPECT_TRUE(session().finished());
}

TEST_F(Http1, AnnouncesTheCloseWhenAnUnreadBodyMayBeLong) {
  world.app.answer = [](Seen& seen, Events) {
    if (seen.exchange->send_state() == Send::idle) LambdaApp::reply(seen, 200, "");
  };
  world.feed("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  EXPECT_EQ(world.out, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n" + k_close);
  EXPECT_TRUE(session().finished());
}

TEST_F(Http1, FinishesAtOnceWhenDrainedIdle) {
  world.feed(k_get);
  EXPECT_FALSE(session().finished());
  session().drain();
  EXPECT_TRUE(session().finished());
}

TEST_F(Http1, FinishesTheAnswerInHandWhenDrained) {
  hold();
  world.feed(k_get + k_get);
  session().drain();
  EXPECT_FALSE(session().finished());
  LambdaApp::reply(call(), 200, "");
  world.settle();
  EXPECT_EQ(world.out, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n" + k_close);
  EXPECT_TRUE(session().finished());
  EXPECT_EQ(world.app.calls.size(), 1u);
}

TEST_F(Http1, SaysCloseWhenTheServerIsStopping) {
  world.open();
  world.host.draining = true;
  world.feed(k_get);
  EXPECT_EQ(world.out, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n" + k_close);
  EXPECT_TRUE(session().finished());
}

TEST_F(Http1, IgnoresAnUpgradeItDoesNotServe) {
  world.feed("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x/9\r\n\r\n" + k_get);
  EXPECT_EQ(world.out, k_ok + k_ok);
  ASSERT_EQ(world.host.notices.size(), 1u);
  EXPECT_EQ(world.host.notices[0].text, "Unsupported upgrade request.");
}

TEST_F(Http1, RefusesToBeAProxy) {
  world.feed("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n");
  EXPECT_TRUE(world.out.starts_with("HTTP/1.1 501 Not Implemented\r\n")) << world.out;
  EXPECT_TRUE(session().finished());
}

// --- refusals ---

const std::string k_400 =
    "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 30\r\n" + k_close +
    "Invalid HTTP request received.";

TEST_F(Http1, AnswersAMalformedRequestAfterTheValidOnesBeforeIt) {
  const std::string bytes = post("one") + k_get + "GET / HTTP/1.1\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
  for (const Cut& cut : every_cut(bytes)) {
    World fresh{Protocol::http1};
    for (std::string_view piece : cut) fresh.feed(piece);
    ASSERT_EQ(fresh.out, ok("one") + k_ok + k_400);
    EXPECT_TRUE(fresh.session->finished());
    EXPECT_FALSE(fresh.session->reading());
    EXPECT_EQ(fresh.app.calls.size(), 2u);
    ASSERT_EQ(fresh.host.notices.size(), 1u);
    EXPECT_EQ(fresh.host.notices[0].text, "Invalid HTTP request received.");
  }
}

TEST_F(Http1, ReportsTheErrorToTheConnection) {
  world.feed("nonsense\r\n");
  EXPECT_FALSE(world.fed);
  EXPECT_EQ(world.out, k_400);
}

TEST_F(Http1, SendsNoBodyWhenItRefusesHead) {
  world.feed("HEAD / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(world.out, k_400.substr(0, k_400.size() - 30));
}

TEST_F(Http1, RefusesAMalformedBodyWhileNothingWasAnswered) {
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  world.feed(head + "2\r\nhi\r\n");
  world.feed("XX\r\n" + k_get);
  EXPECT_EQ(world.out, k_400);
  EXPECT_TRUE(session().finished());
  EXPECT_TRUE(call().gone);
  EXPECT_FALSE(call().body_ended);
}

TEST_F(Http1, NeverEntersTheApplicationWithABodyThatIsMalformedFromTheStart) {
  world.feed("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nXX\r\n");
  EXPECT_EQ(world.out, k_400);
  EXPECT_TRUE(world.app.calls.empty());
}

TEST_F(Http1, LetsAnAnswerFinishThatHadBegunBeforeTheBodyWentWrong) {
  hold();
  world.feed("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n");
  (void)exchange().respond({});
  (void)exchange().write("so far");
  world.feed("XX\r\n");
  EXPECT_TRUE(call().input_ended);
  EXPECT_FALSE(call().body_ended);
  (void)exchange().finish();
  world.settle();
  EXPECT_TRUE(world.out.ends_with("6\r\nso far\r\n0\r\n\r\n")) << world.out;
  EXPECT_TRUE(session().finished());
}

TEST_F(Http1, RefusesABodyOverTheLimit) {
  world.limits.request_body = 4;
  world.feed(post("hello"));
  EXPECT_TRUE(world.out.starts_with("HTTP/1.1 413 ")) << world.out;
  EXPECT_TRUE(world.app.calls.empty());
  EXPECT_TRUE(session().finished());
}

TEST_F(Http1, RefusesAChunkedBodyWhenItPassesTheLimit) {
  world.limits.request_body = 4;
  world.feed("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n");
  EXPECT_EQ(world.out, "");
  world.feed("1\r\nx\r\n");
  EXPECT_TRUE(world.out.starts_with("HTTP/1.1 413 ")) << world.out;
  EXPECT_TRUE(call().gone);
}

TEST_F(Http1, RefusesOverTheConcurrencyLimitWithoutTheApplication) {
  world.limits.concurrency = 1;
  hold();
  world.feed(k_get);
  World other{Protocol::http1};
  other.limits.concurrency = 1;
  other.host.requests = 1;
  other.feed(k_get + k_get);
  EXPECT_EQ(other.out,
            "HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 19\r\n" +
                k_close + "Service Unavailable");
  EXPECT_TRUE(other.app.calls.empty());
  EXPECT_TRUE(other.session->finished());
  ASSERT_EQ(other.host.notices.size(), 1u);
  EXPECT_EQ(other.host.notices[0].text, "Exceeded concurrency limit.");
  other.host.requests = 0;
}

// --- bodies and backpressure ---

TEST_F(Http1, StopsReadingWhileTheApplicationDoesNotTakeTheBody) {
  world.limits.read_buffer = 10;
  world.app.take = false;
  hold();
  world.feed("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n123456789");
  EXPECT_TRUE(session().reading());
  world.feed("012");
  EXPECT_FALSE(session().reading());
  world.hook.unlink();
  exchange().take(1);
  EXPECT_FALSE(world.hook.linked());
  exchange().take(2);
  EXPECT_TRUE(world.hook.linked());
  EXPECT_TRUE(session().reading());
}

TEST_F(Http1, StopsReadingWhenTooMuchIsPipelined) {
  world.limits.read_buffer = 40;
  hold();
  world.feed(k_get + k_get);
  EXPECT_TRUE(session().reading());
  world.feed(k_get);
  EXPECT_FALSE(session().reading());
  world.app.answer = [](Seen& seen, Events) { LambdaApp::echo(seen); };
  LambdaApp::reply(call(), 200, "");
  world.settle();
  EXPECT_TRUE(session().reading());
  EXPECT_EQ(world.out, k_ok + k_ok + k_ok);
}

TEST_F(Http1, ThrowsAnUnwantedBodyAwayAndGoesOn) {
  world.app.answer = [](Seen& seen, Events) { LambdaApp::reply(seen, 403, "no"); };
  world.app.take = false;
  const std::string bytes = post("GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n") + k_get;
  for (const Cut& cut : every_cut(bytes)) {
    World fresh{Protocol::http1};
    fresh.app.take = false;
    fresh.app.answer = world.app.answer;
    for (std::string_view piece : cut) fresh.feed(piece);
    const std::string no = "HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno";
    ASSERT_EQ(fresh.out, no + no);
    EXPECT_EQ(fresh.app.calls.size(), 2u);
    EXPECT_EQ(fresh.app.calls[1]->target, "/");
  }
}

TEST_F(Http1, IsInAHeadRightBehindABodyItThrewAway) {
  world.app.answer = [](Seen& seen, Events) { LambdaApp::reply(seen, 403, "no"); };
  world.feed("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n");
  world.feed("xyzGET / HT");
  EXPECT_FALSE(session().idle());
  (void)later(6'000);
  EXPECT_FALSE(session().finished());
  (void)later(30'000);
  world.settle();
  EXPECT_TRUE(world.out.contains("HTTP/1.1 408 ")) << world.out;
}

TEST_F(Http1, ForgetsWhatIsPipelinedBehindAClose) {
  world.limits.read_buffer = 100;
  hold();
  world.feed(k_get + "GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" + std::string(200, 'x'));
  EXPECT_FALSE(session().reading());
  LambdaApp::reply(call(), 200, "");
  world.settle();
  EXPECT_EQ(call(1).target, "/last");
  EXPECT_TRUE(session().reading());
}

TEST_F(Http1, ClosesRatherThanThrowMuchAway) {
  world.app.answer = [](Seen& seen, Events) { LambdaApp::reply(seen, 403, "no"); };
  world.feed("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_EQ(world.out, "HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n" + k_close + "no");
  EXPECT_TRUE(session().finished());
}

TEST_F(Http1, GivesUpOnAChunkedBodyThatGoesOn) {
  hold();
  world.feed("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  (void)exchange().respond({});
  (void)exchange().write("no");
  world.settle();  // the head has promised to go on
  (void)exchange().finish();
  LambdaApp::leave(call());
  world.settle();
  for (int i = 0; i < 4; ++i) world.feed("10000\r\n" + std::string(65'536, 'x') + "\r\n");
  EXPECT_FALSE(session().finished());
  world.feed("1\r\nx\r\n");
  EXPECT_TRUE(session().finished());
}

TEST_F(Http1, SaysNothingMoreWhenAnUnwantedBodyIsMalformed) {
  world.app.answer = [](Seen& seen, Events) { LambdaApp::reply(seen, 403, "no"); };
  world.feed("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  world.feed("XX\r\n");
  EXPECT_TRUE(session().finished());
  EXPECT_TRUE(world.out.ends_with("\r\n\r\nno")) << world.out;
}

// --- Expect: 100-continue ---

const std::string k_continue = "HTTP/1.1 100 Continue\r\n\r\n";
const std::string k_expecting = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";

TEST_F(Http1, ContinuesOnceWhenTheApplicationWantsTheBody) {
  world.app.answer = [](Seen& seen, Events) {
    seen.exchange->want_body();
    LambdaApp::echo(seen);
  };
  for (const Cut& cut : every_cut(k_expecting)) {
    World fresh{Protocol::http1};
    fresh.app.answer = world.app.answer;
    for (std::string_view piece : cut) fresh.feed(piece);
    ASSERT_EQ(fresh.take_out(), k_continue);
    fresh.feed("h");
    fresh.feed("i" + k_get);
    ASSERT_EQ(fresh.out, ok("hi") + k_ok);
  }
}

TEST_F(Http1, DoesNotContinueWhenTheBodyCameAnyway) {
  world.app.answer = [](Seen& seen, Events) {
    seen.exchange->want_body();
    LambdaApp::echo(seen);
  };
  world.feed(k_expecting + "hi");
  EXPECT_EQ(world.out, ok("hi"));
}

TEST_F(Http1, ClosesWhenItAnswersWithoutTheExpectedBody) {
  world.app.answer = [](Seen& seen, Events) { LambdaApp::reply(seen, 403, "no"); };
  world.feed(k_expecting);
  EXPECT_EQ(world.out, "HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n" + k_close + "no");
  EXPECT_TRUE(session().finished());
}

TEST_F(Http1, GoesOnWhenTheExpectedBodyHasCome) {
  world.app.answer = [](Seen& seen, Events) { LambdaApp::reply(seen, 403, "no"); };
  world.feed(k_expecting + "hi");
  EXPECT_EQ(world.out, "HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno");
  EXPECT_FALSE(session().finished());
}

TEST_F(Http1, DoesNotContinueForHttp10) {
  world.app.answer = [](Seen& seen, Events) {
    seen.exchange->want_body();
    LambdaApp::echo(seen);
  };
  world.feed("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(world.out, "");
  world.feed("hi");
  EXPECT_EQ(world.out, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n" + k_close + "hi");
}

// --- ends ---

TEST_F(Http1, StillAnswersAfterAHalfClose) {
  hold();
  world.feed(k_get);
  session().eof();
  world.settle();
  EXPECT_TRUE(call().input_ended);
  EXPECT_FALSE(session().finished());
  LambdaApp::reply(call(), 200, "");
  world.settle();
  EXPECT_EQ(world.out, k_ok);
  EXPECT_TRUE(session().finished());
}

TEST_F(Http1, AnswersEveryPipelinedRequestAfterAHalfClose) {
  hold();
  world.feed(k_get + post("two") + "GET /half HTTP");
  session().eof();
  world.app.answer = [](Seen& seen, Events) { LambdaApp::echo(seen); };
  LambdaApp::reply(call(), 200, "");
  world.settle();
  EXPECT_EQ(world.out, k_ok + ok("two"));
  EXPECT_TRUE(session().finished());
}

TEST_F(Http1, TellsOfAHalfCloseBehindOctetsThatAreNotRead) {
  hold();
  world.limits.read_buffer = 100;
  world.feed(k_get + post(std::string(200, 'x')));
  ASSERT_FALSE(session().reading());
  session().eof_ahead();
  world.settle();
  EXPECT_TRUE(call().input_ended);
  LambdaApp::reply(call(), 200, "");
  world.settle();
  ASSERT_EQ(world.app.calls.size(), 2u);  // the octets behind it still count, and it hears of the end as well
  EXPECT_EQ(call(1).body.size(), 200u);
  EXPECT_TRUE(call(1).body_ended);
  EXPECT_TRUE(call(1).input_ended);
  EXPECT_TRUE(session().reading());
  EXPECT_FALSE(session().finished());
}

TEST_F(Http1, ABodyThatIsNotReadYetMayStillComeWholeAfterAHalfClose) {
  hold();
  world.app.take = false;
  world.limits.read_buffer = 4;
  world.feed("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n01234");
  ASSERT_FALSE(session().reading());
  session().eof_ahead();
  world.settle();
  EXPECT_FALSE(call().input_ended);
  exchange().take(5);
  world.feed("56789");
  EXPECT_TRUE(call().body_ended);
  EXPECT_TRUE(call().input_ended);
  EXPECT_EQ(exchange().body(), "56789");
}

TEST_F(Http1, NeverShowsACutBodyAsComplete) {
  const std::string bytes = post("hello");
  for (std::size_t size = 1; size < bytes.size(); ++size) {
    World fresh{Protocol::http1};
    fresh.feed(bytes.substr(0, size));
    fresh.session->eof();
    fresh.settle();
    EXPECT_EQ(fresh.out, "");
    if (fresh.app.calls.empty()) {
      EXPECT_TRUE(fresh.session->finished()) << size;
      continue;
    }
    EXPECT_TRUE(fresh.app.calls[0]->input_ended);
    EXPECT_FALSE(fresh.app.calls[0]->body_ended);
    LambdaApp::reply(*fresh.app.calls[0], 400, "cut");
    fresh.settle();
    EXPECT_TRUE(fresh.out.ends_with(k_close + "cut")) << fresh.out;
    EXPECT_TRUE(fresh.session->finished());
  }
}

TEST_F(Http1, FinishesWhenTheIdlePeerLeaves) {
  world.feed(k_get);
  session().eof();
  EXPECT_TRUE(session().finished());
}

TEST_F(Http1, TellsTheApplicationThatTheWireIsGone) {
  hold();
  world.feed(k_get);
  session().gone();
  world.dispatch();
  EXPECT_TRUE(call().gone);
  EXPECT_EQ(exchange().respond({}).error().fault, Fault::gone);
}

TEST_F(Http1, OutlivesNoExchangeThatTheApplicationKeeps) {
  hold();
  world.feed(k_get);
  world.session.reset();
  EXPECT_TRUE(exchange().gone());
  exchange().take(0);
  exchange().want_body();
}

TEST_F(Http1, CutsAnAnswerThatCannotBeCompleted) {
  hold();
  world.feed(k_get + k_get);
  (void)exchange().respond({});
  (void)exchange().write("part");
  exchange().abandon(Fault::state);
  LambdaApp::leave(call());
  world.settle();
  EXPECT_EQ(world.out, "HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n4\r\npart\r\n");
  EXPECT_TRUE(session().finished());
  EXPECT_EQ(world.app.calls.size(), 1u);
}

TEST_F(Http1, StaysCutWhenTheApplicationGoesOn) {
  hold();
  world.feed(k_get);
  (void)exchange().respond({});
  exchange().abandon(Fault::state);
  (void)exchange().write("more");
  (void)exchange().finish();
  world.settle();
  EXPECT_TRUE(world.out.ends_with("4\r\nmore\r\n")) << world.out;
  EXPECT_TRUE(session().finished());
}

TEST_F(Http1, CutsShortOfTheDeclaredLength) {
  hold();
  world.feed(k_get);
  ResponseHead head;
  head.headers.add("content-length", "10");
  (void)exchange().respond(std::move(head));
  (void)exchange().write("hello");
  world.settle();
  exchange().abandon(Fault::value);
  LambdaApp::leave(call());
  EXPECT_TRUE(world.hook.linked());
  world.settle();
  EXPECT_EQ(world.out, "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello");
  EXPECT_TRUE(session().finished());
}

TEST_F(Http1, SendsNothingWhenAbandonedBeforeTheAnswer) {
  hold();
  world.feed(k_get);
  exchange().abandon(Fault::state);
  world.settle();
  EXPECT_EQ(world.out, "");
  EXPECT_TRUE(session().finished());
}

TEST_F(Http1, LetsACompleteAnswerStandWhenAbandonedAfterwards) {
  hold();
  world.feed(k_get);
  (void)exchange().respond({});
  (void)exchange().finish();
  exchange().abandon(Fault::state);
  world.settle();
  EXPECT_EQ(world.out, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n");
  EXPECT_FALSE(session().finished());
}

TEST_F(Http1, EndsTheCallOfAnApplicationThatLingersAfterItsAnswer) {
  hold();
  world.feed(post("hi"));
  ResponseHead head;
  head.headers.add("content-length", "0");
  (void)exchange().respond(std::move(head));
  (void)exchange().finish();
  world.settle();
  EXPECT_TRUE(call().gone);
  world.feed(k_get);
  EXPECT_EQ(world.app.calls.size(), 2u);
}

// --- time ---

TEST_F(Http1, ClosesAConnectionThatSaysNothing) {
  world.open();
  (void)later(9'000);
  EXPECT_FALSE(session().finished());
  EXPECT_TRUE(later(10'000));
  EXPECT_TRUE(session().finished());
  EXPECT_TRUE(world.hook.linked());
  world.settle();
  EXPECT_EQ(world.out, "");
}

TEST_F(Http1, ClosesAnIdleConnection) {
  world.feed(k_get);
  world.take_out();
  (void)later(4'000);
  EXPECT_FALSE(session().finished());
  (void)later(5'000);
  EXPECT_TRUE(session().finished());
  world.settle();
  EXPECT_EQ(world.out, "");
}

TEST_F(Http1, RefusesAHeadThatTakesTooLongInAll) {
  world.feed("GET / HTTP/1.1\r\n");
  (void)later(29'000);
  world.feed("A: b\r\n");
  EXPECT_EQ(world.out, "");
  (void)later(30'000);
  world.settle();
  EXPECT_TRUE(world.out.starts_with("HTTP/1.1 408 Request Timeout\r\n")) << world.out;
  EXPECT_TRUE(session().finished());
  EXPECT_TRUE(world.host.notices.empty());
}

TEST_F(Http1, EndsABodyThatStalls) {
  world.limits.min_body_rate = 0;
  world.feed("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx");
  (void)later(59'000);
  EXPECT_EQ(world.out, "");
  (void)later(60'000);
  world.settle();
  EXPECT_TRUE(world.out.starts_with("HTTP/1.1 408 ")) << world.out;
  EXPECT_TRUE(call().gone);
  EXPECT_TRUE(session().finished());
}

TEST_F(Http1, EndsABodyThatDrips) {
  world.feed("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + std::string(7'000, 'x'));
  (void)later(29'000);
  EXPECT_FALSE(call().gone);
  (void)later(30'000);  // 7000 octets in 30 s are fewer than 240 a second
  world.settle();
  EXPECT_TRUE(call().gone);
}

TEST_F(Http1, WaitsForEverForAStreamingCall) {
  world.feed(
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/connect+proto\r\nTransfer-Encoding: chunked\r\n\r\n");
  (void)later(10'000'000);
  EXPECT_FALSE(call().gone);
}

TEST_F(Http1, DoesNotBlameThePeerForOurOwnPause) {
  world.limits.read_buffer = 10;
  world.app.take = false;
  hold();
  world.feed("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n0123456789");
  for (Millis t = 1'000; t <= 100'000; t += 1'000) (void)later(t);
  EXPECT_FALSE(exchange().gone());
  exchange().take(10);
  for (Millis t = 101'000; t < 130'000; t += 1'000) (void)later(t);
  EXPECT_FALSE(exchange().gone());
  for (Millis t = 130'000; t < 170'000; t += 1'000) (void)later(t);
  EXPECT_TRUE(exchange().gone());
}

TEST_F(Http1, DoesNotBlameThePeerForWaitingForTheContinue) {
  hold();
  world.feed(k_expecting);
  for (Millis t = 1'000; t <= 200'000; t += 1'000) (void)later(t);
  EXPECT_FALSE(exchange().gone());
}

TEST_F(Http1, ClosesQuietlyWhenAnUnwantedBodyStalls) {
  world.app.answer = [](Seen& seen, Events) { LambdaApp::reply(seen, 403, "no"); };
  world.feed("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx");
  world.take_out();
  (void)later(60'000);
  world.settle();
  EXPECT_TRUE(session().finished());
  EXPECT_EQ(world.out, "");
}

TEST_F(Http1, MeasuresNoTimeThatIsSwitchedOff) {
  world.limits.timeout_first_byte = 0;
  world.limits.timeout_request_header = 0;
  world.open();
  (void)later(1'000'000);
  EXPECT_FALSE(session().finished());
  world.feed("GET");
  (void)later(2'000'000);
  EXPECT_FALSE(session().finished());
}

}  // namespace
}  // namespace tricorn
