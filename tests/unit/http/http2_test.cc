// Requests and answers over HTTP/2: whole, cut at every octet, and with neighbours.
#include "http/http2_session.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "http2_client.h"

namespace tricorn {
namespace {

using namespace testing;

TEST(Http2, AnswersAGet) {
  Http2World world;
  world.exchange(hello() + get(1, "/a?b=c", {{"x-y", "z"}}));
  ASSERT_EQ(world.app.calls.size(), 1u);
  const Seen& seen = *world.app.calls[0];
  EXPECT_EQ(seen.method, "GET");
  EXPECT_EQ(seen.target, "/a?b=c");
  EXPECT_EQ(seen.version, Version::http2);
  EXPECT_EQ(*seen.headers.find("host"), "a");
  EXPECT_EQ(*seen.headers.find("x-y"), "z");
  EXPECT_EQ(seen.headers.size(), 2u);
  EXPECT_TRUE(seen.body_ended);
  EXPECT_EQ(world.reply(1).status, 200);
  EXPECT_TRUE(world.reply(1).ended);
  EXPECT_EQ(world.host.total_requests, 1u);
  EXPECT_EQ(world.host.requests, 0u);
  EXPECT_TRUE(world.session->idle());
}

TEST(Http2, TellsItsSettingsFirst) {
  Http2World world;
  world.open();
  world.settled();
  EXPECT_EQ(world.answers.settings.at(3), 100u);
  EXPECT_EQ(world.answers.settings.at(4), 262'144u);
  EXPECT_EQ(world.answers.settings.at(6), 65'536u);
  EXPECT_EQ(world.answers.settings.count(8), 0u);
  EXPECT_EQ(world.answers.updates.at(0), 1'048'576u - 65'535u);
}

TEST(Http2, BringsSettingsIntoTheirRange) {
  Http2World world;
  world.limits.h2_initial_window = 0xffffffff;
  world.limits.h2_connection_window = 0xffffffff;
  world.limits.h2_max_frame_size = 1;
  world.limits.h2_max_concurrent_streams = 0;  // no limit
  world.exchange(hello() + get(1));
  EXPECT_EQ(world.answers.settings.at(3), 0x7fffffffu);
  EXPECT_EQ(world.answers.settings.at(4), 0x7fffffffu);
  EXPECT_EQ(world.answers.settings.count(5), 0u);
  EXPECT_EQ(world.reply(1).status, 200);
}

TEST(Http2, AnswersAPostWhateverTheCuts) {
  const std::string bytes = hello() + post(1, {{"content-length", "10"}, {"cookie", "a"}, {"cookie", "b"}}) +
                            data(1, "hello") + get(3) + data(1, "world", k_end_stream) + get(5);
  for (const Cut& cut : every_cut(bytes)) {
    Http2World world;
    for (std::string_view piece : cut) world.exchange(piece);
    ASSERT_EQ(world.app.calls.size(), 3u);
    EXPECT_EQ(world.app.calls[0]->body, "helloworld");
    EXPECT_EQ(*world.app.calls[0]->headers.find("cookie"), "a; b");
    for (std::uint32_t stream : {1u, 3u, 5u}) {
      EXPECT_EQ(world.reply(stream).status, 200);
      EXPECT_TRUE(world.reply(stream).ended);
    }
    EXPECT_EQ(world.reply(1).body, "helloworld");
    EXPECT_TRUE(world.answers.goaways.empty());
  }
}

TEST(Http2, SendsASmallAnswerInTwoFrames) {
  Http2World world;
  world.exchange(hello() + post(1) + data(1, "hello", k_end_stream));
  EXPECT_EQ(world.reply(1).header_frames, 1u);
  EXPECT_EQ(world.reply(1).data_frames, 1u);
}

TEST(Http2, SendsAnEmptyAnswerInOneFrame) {
  Http2World world;
  for (auto [path, status] : {std::pair{"/", 200}, {"/", 204}, {"/", 304}}) {
    Http2World w;
    w.app.answer = [status = status](Seen& seen, Events) {
      if (seen.exchange->send_state() != Send::idle) return;
      (void)seen.exchange->respond({.status = status, .headers = {}});
      (void)seen.exchange->finish();
      LambdaApp::leave(seen);
    };
    w.exchange(hello() + get(1, path));
    EXPECT_EQ(w.reply(1).status, status);
    EXPECT_EQ(w.reply(1).data_frames, 0u);
    EXPECT_TRUE(w.reply(1).ended);
  }
}

TEST(Http2, SendsNoBodyToHead) {
  Http2World world;
  world.app.answer = [](Seen& seen, Events) {
    if (seen.exchange->send_state() == Send::idle) LambdaApp::reply(seen, 200, "hello");
  };
  world.exchange(hello() + headers(1, head("HEAD", "/"), k_end_stream));
  EXPECT_EQ(world.reply(1).field("content-length"), "5");
  EXPECT_EQ(world.reply(1).data_frames, 0u);
  EXPECT_TRUE(world.reply(1).ended);
}

TEST(Http2, LetsAHeadAnswerTakeItsTime) {
  Http2World world;
  world.app.answer = [](Seen& seen, Events events) {
    if (has(events, Event::request)) (void)seen.exchange->respond({});
  };
  world.exchange(hello() + headers(1, head("HEAD", "/"), k_end_stream));
  EXPECT_FALSE(world.reply(1).ended);
  Exchange& exchange = *world.app.calls[0]->exchange;
  EXPECT_TRUE(exchange.write("thrown away"));
  EXPECT_TRUE(exchange.finish());
  world.settled();
  EXPECT_TRUE(world.reply(1).ended);
  EXPECT_EQ(world.reply(1).body, "");
}

TEST(Http2, AddsTheServersFieldsAndDropsConnectionFields) {
  Http2World world;
  world.open();
  world.host.date_header = world.host.server_header = true;
  world.host.headers = {{"x-all", "1"}};
  world.app.answer = [](Seen& seen, Events) {
    if (seen.exchange->send_state() != Send::idle) return;
    ResponseHead head;
    for (auto name : {"Connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "X-App"})
      head.headers.add(name, "v");
    (void)seen.exchange->respond(std::move(head));
    (void)seen.exchange->finish();
  };
  world.exchange(hello() + get(1));
  Fields expected{{"date", std::string{world.clock.date()}}, {"server", "tricorn"}, {"x-all", "1"}, {"x-app", "v"}};
  EXPECT_EQ(world.reply(1).fields, expected);
}

TEST(Http2, LeavesDateAndServerToTheApplication) {
  Http2World world;
  world.open();
  world.host.date_header = world.host.server_header = true;
  world.app.answer = [](Seen& seen, Events) {
    if (seen.exchange->send_state() != Send::idle) return;
    ResponseHead head;
    head.headers.add("server", "mine");
    head.headers.add("date", "now");
    (void)seen.exchange->respond(std::move(head));
    (void)seen.exchange->finish();
  };
  world.exchange(hello() + get(1));
  EXPECT_EQ(world.reply(1).fields, (Fields{{"server", "mine"}, {"date", "now"}}));
}

TEST(Http2, SendsTrailers) {
  for (std::string_view body : {"", "hello"}) {
    Http2World world;
    world.app.answer = [&](Seen& seen, Events) {
      if (seen.exchange->send_state() != Send::idle) return;
      (void)seen.exchange->respond({});
      if (!body.empty()) (void)seen.exchange->write(body);
      Headers trailers;
      trailers.add("grpc-status", "0");
      trailers.add("connection", "x");
      (void)seen.exchange->finish(std::move(trailers));
      LambdaApp::leave(seen);
    };
    world.exchange(hello() + get(1));
    EXPECT_EQ(world.reply(1).body, body);
    EXPECT_EQ(world.reply(1).trailers, (Fields{{"grpc-status", "0"}}));
    EXPECT_EQ(world.reply(1).data_frames, body.empty() ? 0u : 1u);
    EXPECT_TRUE(world.reply(1).ended);
  }
}

TEST(Http2, SendsTrailersAfterAPause) {
  Http2World world;
  world.app.answer = [](Seen& seen, Events events) {
    if (!has(events, Event::request)) return;
    (void)seen.exchange->respond({});
    (void)seen.exchange->write("a");
  };
  world.exchange(hello() + get(1));
  Seen& seen = *world.app.calls[0];
  (void)seen.exchange->write("b");
  world.settled();
  EXPECT_EQ(world.reply(1).body, "ab");
  EXPECT_FALSE(world.reply(1).ended);
  Headers trailers;
  trailers.add("x", "y");
  (void)seen.exchange->finish(std::move(trailers));
  LambdaApp::leave(seen);
  world.settled();
  EXPECT_EQ(world.reply(1).trailers.size(), 1u);
  EXPECT_TRUE(world.reply(1).ended);
}

TEST(Http2, SendsInformationalHeads) {
  Http2World world;
  world.app.answer = [](Seen& seen, Events) {
    if (seen.exchange->send_state() != Send::idle) return;
    Headers hint;
    hint.add("link", "</a>; rel=preload");
    (void)seen.exchange->inform(103, std::move(hint));
    LambdaApp::reply(seen, 200, "x");
  };
  world.exchange(hello() + get(1));
  EXPECT_EQ(world.reply(1).informational, std::vector{103});
  EXPECT_EQ(world.reply(1).status, 200);
  EXPECT_EQ(world.reply(1).body, "x");
}

TEST(Http2, Says100ContinueOnlyWhenTheBodyIsWanted) {
  Http2World world;
  world.app.answer = [](Seen& seen, Events events) {
    if (has(events, Event::request)) seen.exchange->want_body();
    LambdaApp::echo(seen);
  };
  world.exchange(hello() + post(1, {{"expect", "100-continue"}}) + post(3));
  EXPECT_EQ(world.reply(1).informational, std::vector{100});
  EXPECT_TRUE(world.reply(3).informational.empty());
  world.exchange(data(1, "body", k_end_stream));
  EXPECT_EQ(world.reply(1).body, "body");
}

TEST(Http2, DropsRequestTrailers) {
  Http2World world;
  world.exchange(hello() + post(1) + data(1, "hi") + headers(1, {{"x-t", "1"}}, k_end_stream) + get(3));
  EXPECT_EQ(world.app.calls[0]->headers.count("x-t"), 0u);
  EXPECT_EQ(world.reply(1).body, "hi");
  EXPECT_EQ(world.reply(3).status, 200);
}

TEST(Http2, StreamsBothWaysAtOnce) {
  Http2World world;
  world.app.answer = [](Seen& seen, Events events) {
    if (has(events, Event::request)) (void)seen.exchange->respond({});
    if (!seen.body.empty()) (void)seen.exchange->write(std::exchange(seen.body, {}));
    if (seen.body_ended) (void)seen.exchange->finish();
  };
  world.exchange(hello() + post(1));
  EXPECT_EQ(world.reply(1).status, 200);
  std::string expected;
  for (int i = 0; i < 100; ++i) {
    const std::string message = "message " + std::to_string(i);
    world.exchange(data(1, message));
    expected += message;
    ASSERT_EQ(world.reply(1).body, expected);
  }
  world.exchange(data(1, "", k_end_stream));
  EXPECT_TRUE(world.reply(1).ended);
}

TEST(Http2, RefusesMalformedHeadsAndServesOn) {
  const Fields heads[] = {
      head("GET", "/", {{"X-Up", "1"}}),
      head("GET", "/", {{"connection", "close"}}),
      head("GET", "/", {{"transfer-encoding", "chunked"}}),
      head("GET", "/", {{"te", "gzip"}}),
      head("GET", "/", {{"x", "a\r\nb"}}),
      head("GET", "/", {{"x", std::string_view{"a\0b", 3}.data()}, {"y", std::string{"a\0b", 3}}}),
      head("GET", "/", {{"x", " a"}}),
      head("GET", "/", {{"x a", "1"}}),
      head("GET", "/", {{"", "1"}}),
      head("GET", "/", {{":path", "/late"}}),
      head("GET", "/", {{"content-length", "1"}, {"content-length", "2"}}),
      head("GET", "/", {{"content-length", "3"}}),
      {{":method", "GET"}, {":path", "/"}, {":authority", "a"}},
      {{":scheme", "http"}, {":path", "/"}, {":authority", "a"}},
      {{":method", "GET"}, {":scheme", "http"}, {":path", "/"}},
      {{":foo", "x"}, {":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", "a"}},
      {{":method", "CONNECT"}, {":protocol", "websocket"}, {":scheme", "http"}, {":path", "/"}, {":authority", "a"}},
      head("GET", "/", {{"host", "b"}}),
      head("GET", "noslash"),
      head("G T", "/"),
  };
  for (const Fields& bad : heads) {
    Http2World world;
    world.exchange(hello() + headers(1, bad, k_end_stream) + get(3));
    const Reply& refused = world.reply(1);
    EXPECT_TRUE(refused.reset == Http2Error::protocol_error || refused.status == 400) << bad.back().first;
    EXPECT_EQ(world.app.calls.size(), 1u) << bad.back().first;
    EXPECT_EQ(world.reply(3).status, 200) << bad.back().first;
    ASSERT_EQ(world.host.notices.size(), 1u) << bad.back().first;
    EXPECT_EQ(world.host.notices[0].text, "Invalid HTTP request received.");
  }
}

TEST(Http2, RefusesConnect) {
  Http2World world;
  world.exchange(hello() + headers(1, {{":method", "CONNECT"}, {":authority", "a:1"}}, k_end_stream));
  EXPECT_EQ(world.reply(1).status, 501);
  EXPECT_TRUE(world.app.calls.empty());
}

TEST(Http2, ResetsABodyOfAnotherLength) {
  for (const std::string& body : {data(1, "hello", k_end_stream), data(1, "hello, world", k_end_stream)}) {
    Http2World world;
    world.exchange(hello() + post(1, {{"content-length", "10"}}) + body + get(3));
    EXPECT_EQ(world.reply(1).reset, Http2Error::protocol_error);
    EXPECT_FALSE(world.app.calls[0]->body_ended);
    EXPECT_EQ(world.reply(3).status, 200);
  }
}

TEST(Http2, RefusesHeadsOverTheLimit) {
  Http2World world;
  Fields many = head("GET", "/");
  for (int i = 0; i < 150; ++i) many.emplace_back("x-" + std::to_string(i), "v");
  world.exchange(hello() + headers(1, many, k_end_stream) + get(3, "/" + std::string(16'000, 'x'), {}) +
                 post(5, {{"x", std::string(15'000, 'v')}}) + get(7));
  EXPECT_EQ(world.reply(1).status, 431);
  EXPECT_TRUE(world.reply(1).ended);
  EXPECT_EQ(world.reply(3).status, 200);
  EXPECT_EQ(world.reply(7).status, 200);
}

TEST(Http2, EndsTheConnectionForAnAbsurdHead) {
  Http2World world;
  Fields many = head("GET", "/");
  for (int i = 0; i < 500; ++i) many.emplace_back("x-" + std::to_string(i), "v");
  world.exchange(hello() + headers(1, many, k_end_stream));
  EXPECT_EQ(world.answers.last_goaway(), Http2Error::enhance_your_calm);
  EXPECT_EQ(world.fed.error().fault, Fault::too_large);
  EXPECT_TRUE(world.session->finished());
  EXPECT_TRUE(world.app.calls.empty());
}

TEST(Http2, RefusesABodyOverTheLimit) {
  for (const auto& extra : {Fields{{"content-length", "11"}}, Fields{}}) {
    Http2World world;
    world.limits.request_body = 10;
    world.exchange(hello() + post(1, extra) + data(1, "hello, worl", k_end_stream) + get(3));
    EXPECT_EQ(world.reply(1).status, 413);
    EXPECT_EQ(world.reply(3).status, 200);
    EXPECT_EQ(world.app.calls.size(), 1u);
  }
}

TEST(Http2, ResetsABodyOverTheLimitOnceTheAnswerHasBegun) {
  Http2World world;
  world.limits.request_body = 10;
  world.app.answer = [](Seen& seen, Events events) {
    if (has(events, Event::request)) (void)seen.exchange->respond({});
  };
  world.exchange(hello() + post(1));
  world.exchange(data(1, "hello, world"));
  EXPECT_EQ(world.reply(1).status, 200);
  EXPECT_EQ(world.reply(1).reset, Http2Error::cancel);
  EXPECT_TRUE(world.app.calls[0]->gone);
}

TEST(Http2, AnswersForAnOverloadedServer) {
  Http2World world;
  world.limits.concurrency = 1;
  world.app.answer = nullptr;
  world.exchange(hello() + get(1));
  world.exchange(get(3));
  EXPECT_EQ(world.app.calls.size(), 1u);
  EXPECT_EQ(world.reply(3).status, 503);
  EXPECT_EQ(world.reply(3).body, "Service Unavailable");
  EXPECT_TRUE(world.reply(3).ended);
}

TEST(Http2, RefusesStreamsAboveTheLimit) {
  for (const std::string& greeting : {std::string{k_preface} + settings(), hello()}) {
    Http2World world;
    world.limits.h2_max_concurrent_streams = 2;
    world.exchange(greeting + post(1) + post(3) + post(5) + data(1, "x", k_end_stream) + post(7));
    EXPECT_EQ(world.reply(5).reset, Http2Error::refused_stream);
    EXPECT_EQ(world.reply(7).reset, Http2Error::refused_stream);  // 1 is open until its answer is out
    EXPECT_EQ(world.reply(1).body, "x");
    world.exchange(get(9));
    EXPECT_EQ(world.reply(9).status, 200);
    EXPECT_EQ(world.app.calls.size(), 3u);
    EXPECT_TRUE(world.answers.goaways.empty());
  }
}

TEST(Http2, TellsTheApplicationOfAReset) {
  Http2World world;
  world.app.answer = [](Seen& seen, Events events) {
    if (has(events, Event::request)) (void)seen.exchange->respond({});
  };
  world.exchange(hello() + post(1));
  world.exchange(reset(1));
  const Seen& seen = *world.app.calls[0];
  EXPECT_TRUE(seen.gone);
  EXPECT_EQ(seen.exchange->write("x").error().fault, Fault::gone);
  world.exchange(get(3));
  EXPECT_EQ(world.reply(3).status, 200);
}

TEST(Http2, NeverRunsARequestResetAtOnce) {
  Http2World world;
  world.exchange(hello() + get(1) + reset(1) + post(3) + data(3, "x") + reset(3) + get(5));
  ASSERT_EQ(world.app.calls.size(), 1u);
  EXPECT_EQ(world.reply(5).status, 200);
}

TEST(Http2, ResetsWhatTheApplicationAbandons) {
  Http2World world;
  world.app.answer = [](Seen& seen, Events events) {
    if (!has(events, Event::request)) return;
    if (seen.target == "/good") return LambdaApp::reply(seen, 200, "ok");
    (void)seen.exchange->respond({});
    (void)seen.exchange->write("part");
    if (seen.target == "/late") return;
    seen.exchange->abandon(Fault::state);
    LambdaApp::leave(seen);
  };
  world.exchange(hello() + get(1, "/bad") + get(3, "/good") + get(5, "/late"));
  EXPECT_EQ(world.reply(1).reset, Http2Error::internal_error);
  EXPECT_EQ(world.reply(1).status, 200);
  EXPECT_EQ(world.reply(1).body, "part");  // what was written before is still sent
  EXPECT_FALSE(world.reply(1).ended);
  EXPECT_EQ(world.reply(3).body, "ok");
  EXPECT_EQ(world.reply(5).body, "part");
  world.app.calls[2]->exchange->abandon(Fault::state);
  world.settled();
  EXPECT_EQ(world.reply(5).reset, Http2Error::internal_error);
  EXPECT_TRUE(world.session->idle());
}

TEST(Http2, StopsALargeBodyThatNobodyReads) {
  Http2World world;
  world.app.answer = [](Seen& seen, Events) {
    if (seen.exchange && seen.exchange->send_state() == Send::idle) LambdaApp::reply(seen, 200, "no");
  };
  world.app.take = false;
  world.exchange(hello() + post(1, {{"content-length", "1000000"}}) + data(1, "x") + post(3) + data(3, "x"));
  EXPECT_TRUE(world.reply(1).ended);
  EXPECT_EQ(world.reply(1).reset, Http2Error::no_error);
  EXPECT_EQ(world.reply(3).status, 200);
  EXPECT_FALSE(world.reply(3).reset);  // a small rest is taken
  world.exchange(data(3, "rest", k_end_stream));
  EXPECT_FALSE(world.reply(3).reset);
  EXPECT_TRUE(world.session->idle());
  world.exchange(post(5));
  for (int i = 0; i < 5; ++i) world.exchange(data(5, std::string(16'000, 'x')));
  EXPECT_EQ(world.reply(5).reset, Http2Error::no_error);
  EXPECT_TRUE(world.session->idle());
}

TEST(Http2, ReadsOnAfterItsAnswerWhileTheApplicationDoes) {
  Http2World world;
  world.app.answer = [](Seen& seen, Events events) {
    if (!has(events, Event::request)) return;
    (void)seen.exchange->respond({});
    (void)seen.exchange->finish();
  };
  world.exchange(hello() + post(1));
  EXPECT_TRUE(world.reply(1).ended);
  for (int i = 0; i < 20; ++i) world.exchange(data(1, std::string(16'000, 'x')));
  EXPECT_FALSE(world.reply(1).reset);
  EXPECT_EQ(world.app.calls[0]->body.size(), 320'000u);
}

TEST(Http2, EndsInputOnAHalfClose) {
  Http2World world;
  world.app.answer = [](Seen& seen, Events) {
    if (seen.input_ended && seen.exchange->send_state() == Send::idle) LambdaApp::reply(seen, 200, "late");
  };
  world.exchange(hello() + post(1));
  world.session->eof();
  EXPECT_FALSE(world.session->finished());
  world.settled();
  EXPECT_EQ(world.reply(1).body, "late");
  world.tick_after(2'000);
  EXPECT_TRUE(world.session->finished());
}

TEST(Http2, TellsEveryApplicationWhenTheWireGoes) {
  Http2World world;
  world.app.answer = nullptr;
  world.exchange(hello() + post(1) + get(3));
  world.session->gone();
  world.dispatch();
  for (auto& seen : world.app.calls) EXPECT_TRUE(seen->gone);
}

TEST(Http2, ServesManyRequestsOnOneConnection) {
  Http2World world;
  world.exchange(hello());
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    const std::uint32_t stream = 2 * i + 1;
    world.exchange(i % 2 ? get(stream) : post(stream) + window_update(stream, 1'000) + data(stream, "x", k_end_stream));
    ASSERT_TRUE(world.reply(stream).ended) << stream;
    world.answers.replies.clear();
    world.app.calls.clear();
  }
  EXPECT_TRUE(world.answers.goaways.empty());
  EXPECT_EQ(world.host.total_requests, 20'000u);
}

}  // namespace
}  // namespace tricorn
