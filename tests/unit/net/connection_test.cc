#include "net/connection.h"

#include <gtest/gtest.h>

#include "net/rig.h"

namespace tricorn::testing {
namespace {

// --- input ---

TEST(Connection, RequestsArriveWhateverTheCuts) {
  const std::string request = post("hello");
  for (std::size_t piece : {std::size_t{1}, std::size_t{2}, std::size_t{5}, request.size()}) {
    Rig rig;
    Client client = rig.connect();
    for (std::size_t at = 0; at < request.size(); at += piece) {
      client.send(std::string_view{request}.substr(at, piece));
      rig.turn(0.0);
    }
    EXPECT_TRUE(rig.until([&] { return client.has("hello"); })) << piece;
  }
}

TEST(Connection, ARequestThatStartsLikeAPrefaceIsHttp1) {
  for (std::string_view method : {"P", "PR", "PRI", "PRIX", "POST", "PUT"}) {
    Rig rig;
    Client client = rig.connect();
    client.send(method.substr(0, 1));
    rig.turn(0.01);
    client.send(std::string{method.substr(1)} + " / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n");
    EXPECT_TRUE(rig.until([&] { return client.has("HTTP/1.1 "); })) << method;
  }
}

TEST(Connection, MalformedInputIsAnsweredAndTheConnectionEnds) {
  Rig rig;
  Client client = rig.connect();
  client.send("nonsense\r\n\r\n");
  EXPECT_TRUE(rig.until([&] { return client.done(); }, 1));
  EXPECT_TRUE(client.in.starts_with("HTTP/1.1 400 ")) << client.in;
  EXPECT_FALSE(client.reset);
  client.fd.close();
  EXPECT_TRUE(rig.until([&] { return rig.server->connections() == 0; }, 1));
}

TEST(Connection, AnEarlyAnswerIsReadThoughTheBodyStillComes) {
  Limits limits;
  limits.request_body = 1000;
  Rig rig{limits};
  Client client = rig.connect();
  client.send(post(big(100'000)));  // more than the session will read
  EXPECT_TRUE(rig.until([&] { return client.done(); }, 1));
  EXPECT_TRUE(client.in.starts_with("HTTP/1.1 413 ")) << client.in;
  EXPECT_FALSE(client.reset);
}

TEST(Connection, APeerThatSendsForeverAfterTheAnswerIsCutOff) {
  Limits limits;
  limits.request_body = 1000;
  Rig rig{limits};
  Client client = rig.connect();
  client.send(post(big(2000)));
  const std::string more = big(65'536);
  EXPECT_TRUE(rig.until(
      [&] {
        client.send_some(more);
        return rig.server->connections() == 0 && !rig.server->host().total_requests;
      },
      1));
}

TEST(Connection, AnUnreadBodyHoldsTheClientBack) {
  Rig rig;
  rig.app.take = false;
  rig.app.answer = nullptr;
  Client client = rig.connect();
  const std::string body = big(16u << 20);
  const std::string request = post(body);
  std::string_view rest = request;
  EXPECT_FALSE(rig.until([&] { return rest.remove_prefix(client.send_some(rest)), rest.empty(); }, 0.3));
  Exchange& exchange = *rig.call().exchange;
  EXPECT_LE(exchange.body().size(), 65'536u * 2);
  std::size_t taken = 0;
  EXPECT_TRUE(rig.until([&] {
    rest.remove_prefix(client.send_some(rest));
    const std::size_t size = exchange.body().size();
    EXPECT_LE(size, 65'536u * 2);
    EXPECT_EQ(exchange.body(), std::string_view{body}.substr(taken, size));
    exchange.take(size);
    taken += size;
    return taken == body.size();
  }));
  EXPECT_TRUE(exchange.body_ended());
}

TEST(Connection, ThePrefaceMakesItHttp2WhateverTheCuts) {
  const std::string request = http2_get();
  for (std::size_t at = 1; at <= request.size(); ++at) {
    Rig rig;
    rig.app.answer = [](Seen& seen, Events) { LambdaApp::reply(seen, 200, "two it is"); };
    Client client = rig.connect();
    client.send(std::string_view{request}.substr(0, at));
    rig.turn(0.0);
    rig.turn(0.0);
    if (at < request.size()) client.send(std::string_view{request}.substr(at));
    ASSERT_TRUE(rig.until([&] { return client.has("two it is"); }, 2)) << at;
    EXPECT_EQ(rig.call().version, Version::http2);
  }
}

TEST(Connection, AnHttp2ListenerSpeaksFirst) {
  Rig rig{{}, {.http1 = false, .http2 = true}};
  Client client = rig.connect();
  EXPECT_TRUE(rig.until([&] { return client.receive(), client.in.size() >= 9 && client.in[3] == 4; }, 1));
}

TEST(Connection, AnHttp1ListenerKnowsNoPreface) {
  Rig rig{{}, {.http1 = true, .http2 = false}};
  Client client = rig.connect();
  client.send(http2_get());
  EXPECT_TRUE(rig.until([&] { return client.has("HTTP/1.1 "); }, 1));
}

// --- ends of all kinds ---

TEST(Connection, AHalfClosedPeerStillGetsItsAnswer) {
  Rig rig;
  rig.app.answer = nullptr;
  Client client = rig.connect();
  client.send(get());
  client.half_close();
  ASSERT_TRUE(rig.until([&] { return !rig.app.calls.empty() && rig.call().input_ended; }, 1));
  EXPECT_FALSE(rig.call().gone);
  LambdaApp::reply(rig.call(), 200, "after all");
  EXPECT_TRUE(rig.until([&] { return client.done(); }, 1));
  EXPECT_TRUE(client.in.ends_with("after all"));
  EXPECT_TRUE(rig.until([&] { return rig.server->connections() == 0; }, 1));
}

TEST(Connection, AResetIsToldAtOnce) {
  Rig rig;
  rig.app.answer = nullptr;
  Client client = rig.connect();
  client.send(get());
  ASSERT_TRUE(rig.until([&] { return !rig.app.calls.empty(); }));
  client.abort();
  EXPECT_TRUE(rig.until([&] { return rig.call().gone; }, 1));
  EXPECT_EQ(rig.server->connections(), 0u);
}

TEST(Connection, APeerThatLeavesIsNoticedWhileReadingIsPaused) {
  Rig rig;
  rig.app.take = false;
  rig.app.answer = nullptr;
  Client client = rig.connect();
  const std::string body = big(16u << 20);
  client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 16777216\r\n\r\n");
  std::string_view rest = body;
  rig.until([&] { return rest.remove_prefix(client.send_some(rest)), false; }, 0.1);
  client.abort();
  EXPECT_TRUE(rig.until([&] { return rig.call().gone; }, 1));
}

TEST(Connection, APausedHalfCloseDoesNotSpinAndTheRestArrives) {
  Limits limits;
  limits.read_buffer = 1000;
  Rig rig{limits};
  rig.app.take = false;
  rig.app.answer = nullptr;
  Client client = rig.connect();
  const std::string body = big(200'000);
  client.send(post(body));
  client.half_close();
  ASSERT_TRUE(rig.until([&] { return !rig.app.calls.empty(); }));
  rig.for_a_while(0.02);
  int turns = 0;
  const auto start = std::chrono::steady_clock::now();
  for (; std::chrono::steady_clock::now() - start < std::chrono::milliseconds{300}; ++turns) rig.turn(0.1);
  EXPECT_LT(turns, 10);
  std::string taken;
  EXPECT_TRUE(rig.until([&] {
    taken += rig.call().exchange->body();
    rig.call().exchange->take(rig.call().exchange->body().size());
    return taken.size() == body.size();
  }));
  EXPECT_EQ(taken, body);
  EXPECT_TRUE(rig.until([&] { return rig.call().exchange->body_ended(); }));
}

// A long poll with more pipelined behind it than is read ahead.
struct LongPoll {
  Rig rig;
  Client client = rig.connect();
  LongPoll() {
    rig.app.answer = nullptr;
    client.send(get());
    EXPECT_TRUE(rig.until([&] { return !rig.app.calls.empty(); }, 1));
    for (int i = 0; i < 3; ++i) client.send("GET / HTTP/1.1\r\nhost: a\r\nx: " + big(30'000) + "\r\n\r\n");
    rig.for_a_while(0.05);
  }
  bool told() {
    return rig.until([&] { return rig.call().input_ended || rig.call().gone; }, 1);
  }
  bool ends() {
    return rig.until([&] { return rig.call().gone && rig.server->connections() == 0; }, 1);
  }
};

TEST(Connection, ALongPollHearsOfACloseBehindPipelinedRequests) {
  LongPoll poll;
  poll.client.half_close();
  EXPECT_TRUE(poll.told());
  EXPECT_FALSE(poll.rig.call().gone);
  poll.rig.app.answer = [](Seen& seen, Events) { LambdaApp::echo(seen); };
  LambdaApp::reply(poll.rig.call(), 200, "first");
  EXPECT_TRUE(poll.rig.until([&] { return poll.client.done(); }, 1));
  EXPECT_EQ(poll.rig.app.calls.size(), 4u);  // those behind it are answered all the same
}

TEST(Connection, AResetAfterAHalfCloseIsNoticedBehindPipelinedRequests) {
  LongPoll poll;
  poll.client.half_close();
  EXPECT_TRUE(poll.told());
  poll.client.abort();
  EXPECT_TRUE(poll.ends());
}

TEST(Connection, AResetAfterAHalfCloseIsNoticedWhileNothingIsWatchedFor) {
  for (const std::string& request : {get(), http2_get()}) {
    Rig rig;
    rig.app.answer = nullptr;
    Client client = rig.connect();
    client.send(request);
    client.half_close();
    ASSERT_TRUE(rig.until([&] { return !rig.app.calls.empty() && rig.call().input_ended; }, 1));
    rig.for_a_while(0.02);
    EXPECT_FALSE(rig.call().gone);
    client.abort();
    EXPECT_TRUE(rig.until([&] { return rig.call().gone && rig.server->connections() == 0; }, 1));
  }
}

TEST(Connection, AUnixPeerThatHasClosedIsGone) {
  const Folder folder;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  folder.path("socket").copy(address.sun_path, sizeof address.sun_path - 1);
  Rig rig;
  rig.app.answer = nullptr;
  const Fd listener = listening(address);
  ASSERT_TRUE(rig.server->listen(listener));
  Client client{listener};
  client.send(get());
  ASSERT_TRUE(rig.until([&] { return !rig.app.calls.empty(); }, 1));
  client.half_close();
  rig.for_a_while(0.4);
  EXPECT_TRUE(rig.call().input_ended);
  EXPECT_FALSE(rig.call().gone);
  client.fd.close();
  EXPECT_TRUE(rig.until([&] { return rig.call().gone; }, 1));
}

TEST(Connection, AnHttp2SenderThatWaitsForAWindowHearsOfAClose) {
  Rig rig;
  rig.app.answer = [](Seen& seen, Events) {
    if (seen.gone) return;
    if (seen.exchange->send_state() == Send::idle) (void)seen.exchange->respond({});
    while (seen.exchange->writable()) (void)seen.exchange->write(big(10'000));
  };
  Client client = rig.connect();
  client.send(http2_get());
  ASSERT_TRUE(rig.until([&] { return client.receive(), client.in.size() > 65'535; }, 1));
  rig.for_a_while(0.02);
  ASSERT_FALSE(rig.call().gone);
  client.fd.close();
  EXPECT_TRUE(rig.until([&] { return rig.call().gone && rig.server->connections() == 0; }, 1));
}

TEST(Connection, ManyAbruptEndsLeaveNothingBehind) {
  Rig rig;
  for (int i = 0; i < 200; ++i) {
    Client client = rig.connect();
    if (i % 4 > 0) client.send(i % 4 == 1 ? "G" : i % 4 == 2 ? get() : "PRI * HT");
    if (i % 3 > 0) rig.turn(0.0);
    if (i % 2 > 0) client.abort();
  }
  EXPECT_TRUE(rig.until([&] { return rig.server->connections() == 0; }, 2));
}

// --- output ---

TEST(Connection, ALargeAnswerArrivesWhole) {
  Rig rig;
  const std::string content = big(8u << 20);
  rig.app.answer = [&](Seen& seen, Events) { LambdaApp::reply(seen, 200, content); };
  Client client = rig.connect(), other = rig.connect();
  client.send(get());
  ASSERT_TRUE(rig.until([&] { return client.has("\r\n\r\n"); }));
  other.send(get());
  EXPECT_TRUE(rig.until([&] { return client.receive(), other.receive(), body_of(client).size() == content.size(); }));
  EXPECT_EQ(body_of(client), content);
  EXPECT_TRUE(rig.until([&] { return other.receive(), body_of(other) == content; }));
}

TEST(Connection, ASlowReaderHoldsTheApplicationBack) {
  Limits limits;
  Rig rig{limits};
  const std::string piece = big(10'000);
  std::size_t written = 0;
  const auto pump = [&](Seen& seen) {
    while (!seen.gone && written < (32u << 20) && seen.exchange->writable()) {
      EXPECT_TRUE(seen.exchange->write(piece));
      written += piece.size();
    }
  };
  rig.app.answer = [&](Seen& seen, Events) {
    if (seen.exchange->send_state() == Send::idle && !seen.gone) (void)seen.exchange->respond({.headers = {}});
    pump(seen);
  };
  Client client{rig.listener, 8192};
  client.send(get());
  rig.for_a_while(0.3);
  EXPECT_LT(written, 8u << 20);  // what the kernel holds, and the limit of ours
  const std::size_t before = written;
  EXPECT_TRUE(rig.until([&] { return client.receive(), written > before + (1u << 20); }));
}

TEST(Connection, AFileIsSentAndAShortOneCutsTheAnswer) {
  const Folder folder;
  const std::string content = big(3'000'000);
  const std::string path = folder.write("file", content);
  Rig rig;
  rig.app.answer = [&](Seen& seen, Events) {
    if (!seen.gone) reply_with_file(seen, path, seen.target == "/long" ? content.size() + 1 : content.size());
  };
  Client client = rig.connect();
  client.send(get("/"));
  EXPECT_TRUE(rig.until([&] { return client.receive(), body_of(client).size() == content.size(); }));
  EXPECT_EQ(body_of(client), content);
  client.in.clear();
  client.send(get("/long"));
  EXPECT_TRUE(rig.until([&] { return client.done(); }));
  EXPECT_EQ(body_of(client).size(), content.size());
  ASSERT_TRUE(rig.until([&] { return !rig.notices.empty(); }, 1));
  EXPECT_EQ(rig.notices[0], "a file ended before what was promised of it");
}

TEST(Connection, AnswersAreCorkedIntoOnePacket) {
  Rig rig;
  rig.app.answer = [](Seen& seen, Events) {
    if (seen.gone || seen.exchange->send_state() != Send::idle) return;
    ResponseHead head{.status = 200, .headers = {}};
    head.headers.add("content-length", "2");
    (void)seen.exchange->respond(std::move(head));
    (void)seen.exchange->write("o");
    (void)seen.exchange->write("k");
    (void)seen.exchange->finish();
    LambdaApp::leave(seen);
  };
  Client client = rig.connect();
  client.send(get());
  char buffer[4096];
  ssize_t n = -1;
  ASSERT_TRUE(rig.until([&] { return (n = ::recv(client.fd, buffer, sizeof buffer, MSG_DONTWAIT)) > 0; }));
  EXPECT_TRUE((std::string_view{buffer, static_cast<std::size_t>(n)}.ends_with("\r\n\r\nok")));
}

// --- time ---

TEST(Connection, SilenceEndsAfterTheTimeForTheFirstOctet) {
  Limits limits;
  limits.timeout_first_byte = 100;
  limits.timeout_request_header = 600;
  Rig rig{limits};
  Client silent = rig.connect(), half = rig.connect();
  half.send("PRI * HTTP/2.0\r\n");
  EXPECT_TRUE(rig.until([&] { return silent.done(); }, 1));
  EXPECT_FALSE(half.done());
  EXPECT_TRUE(rig.until([&] { return half.done(); }, 2));
}

TEST(Connection, APeerThatDoesNotReadIsCutOff) {
  Limits limits;
  limits.timeout_write = 200;
  Rig rig{limits};
  const std::string content = big(16u << 20);
  rig.app.answer = [&](Seen& seen, Events) {
    if (!seen.gone) LambdaApp::reply(seen, 200, content);
  };
  Client client{rig.listener, 8192};
  client.send(get());
  ASSERT_TRUE(rig.until([&] { return rig.server->connections() == 1; }));
  EXPECT_TRUE(rig.until([&] { return rig.server->connections() == 0; }, 2));
  EXPECT_TRUE(client.done() && client.reset);
}

TEST(Connection, APeerThatReadsSlowlyIsNot) {
  Limits limits;
  limits.timeout_write = 300;
  Rig rig{limits};
  const std::string content = big(4u << 20);
  rig.app.answer = [&](Seen& seen, Events) { LambdaApp::reply(seen, 200, content); };
  Client client{rig.listener, 8192};
  client.send(get());
  const auto start = std::chrono::steady_clock::now();
  char buffer[65'536];
  std::size_t got = 0;
  while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds{900}) {
    rig.turn(0.02);
    const ssize_t n = ::recv(client.fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (n > 0) got += static_cast<std::size_t>(n);
  }
  EXPECT_EQ(rig.server->connections(), 1u);
  EXPECT_GT(got, 0u);
}

TEST(Connection, AnIdleConnectionIsClosedInGoodOrder) {
  Limits limits;
  limits.timeout_keep_alive = 100;
  Rig rig{limits};
  Client client = rig.connect();
  client.send(get());
  ASSERT_TRUE(rig.until([&] { return client.has("200"); }));
  EXPECT_TRUE(rig.until([&] { return client.done(); }, 1));
  EXPECT_FALSE(client.reset);
  EXPECT_EQ(rig.server->connections(), 0u);  // nothing was to be said: no lingering
}

TEST(Connection, LingeringEndsByItself) {
  Rig rig;
  Client client = rig.connect();
  client.send("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
  ASSERT_TRUE(rig.until([&] { return client.done(); }));
  EXPECT_EQ(rig.server->connections(), 1u);  // the client has not closed its side
  EXPECT_TRUE(rig.until([&] { return rig.server->connections() == 0; }, 3));
}

}  // namespace
}  // namespace tricorn::testing
