// HTTP/2 flow control, floods, clocks and the ways a connection ends.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "http/http2_session.h"
#include "http2_client.h"

namespace tricorn {
namespace {

using namespace testing;

// Answers /big with 1 MiB as fast as it may write, anything else by echo.
void serve_big(Seen& seen, Events) {
  if (seen.target != "/big") return LambdaApp::echo(seen);
  if (!seen.exchange || seen.gone) return;
  if (seen.exchange->send_state() == Send::idle) (void)seen.exchange->respond({});
  while (seen.body.size() < 64 && seen.exchange->writable()) {
    seen.body += '.';  // one for each part
    (void)seen.exchange->write(std::string(16'384, 'x'));
  }
  if (seen.body.size() < 64 || seen.exchange->send_state() == Send::done) return;
  (void)seen.exchange->finish();
}

Ref<File> file_with(std::string_view content) {
  const int fd = ::memfd_create("file", MFD_CLOEXEC);
  EXPECT_EQ(::write(fd, content.data(), content.size()), static_cast<ssize_t>(content.size()));
  return make_ref<File>(fd, content.size());
}

struct Http2Flow : ::testing::Test {
  Http2World world;
  void SetUp() override { world.app.answer = serve_big; }
  const Reply& reply(std::uint32_t stream) { return world.reply(stream); }
};

TEST_F(Http2Flow, StopsAtTheStreamsWindow) {
  world.exchange(hello() + get(1, "/big"));
  EXPECT_EQ(reply(1).body.size(), 65'535u);
  EXPECT_LE(world.app.calls[0]->exchange->out().size(), 65'536u + 16'384u);
  world.exchange(window_update(0, 1 << 24) + window_update(1, 1'000));
  EXPECT_EQ(reply(1).body.size(), 66'535u);
  world.exchange(window_update(1, 1 << 24));
  EXPECT_EQ(reply(1).body.size(), 1'048'576u);
  EXPECT_TRUE(reply(1).ended);
}

TEST_F(Http2Flow, FollowsAShrinkingWindow) {
  world.exchange(std::string{k_preface} + settings({{4, 5'000}}) + settings_ack() + get(1, "/big"));
  EXPECT_EQ(reply(1).body.size(), 5'000u);
  world.exchange(settings({{4, 100}}) + window_update(0, 1 << 24) + window_update(1, 4'900));
  EXPECT_EQ(reply(1).body.size(), 5'000u);
  world.exchange(window_update(1, 1));
  EXPECT_EQ(reply(1).body.size(), 5'001u);
  world.exchange(settings({{4, 1 << 24}}));
  EXPECT_EQ(reply(1).body.size(), 1'048'576u);
  EXPECT_TRUE(reply(1).ended);
}

TEST_F(Http2Flow, AStalledStreamDoesNotStallItsNeighbours) {
  world.exchange(hello() + window_update(0, 1 << 24) + get(1, "/big") + get(3, "/big"));
  world.exchange(post(5) + data(5, "hello", k_end_stream));
  EXPECT_EQ(reply(5).body, "hello");
  EXPECT_FALSE(reply(1).ended);
}

// --- after a half-close no window opens any more ---

TEST_F(Http2Flow, EndsAStreamThatWaitsForItsWindowWhenThePeerHasLeft) {
  world.exchange(hello() + window_update(0, 1 << 24) + get(1, "/big") + get(3));
  ASSERT_FALSE(world.app.calls[0]->exchange->writable());
  world.session->eof();
  world.settled();
  EXPECT_TRUE(world.app.calls[0]->gone);
  EXPECT_EQ(reply(1).reset, Http2Error::cancel);
  EXPECT_TRUE(reply(3).ended);
  EXPECT_TRUE(world.session->finished());
}

TEST_F(Http2Flow, EndsAStreamThatWaitsForTheConnectionsWindowWhenThePeerHasLeft) {
  world.exchange(hello() + get(1, "/big") + window_update(1, 1 << 24));
  ASSERT_EQ(reply(1).body.size(), 65'535u);
  world.session->eof();
  world.settled();
  EXPECT_TRUE(world.app.calls[0]->gone);
  EXPECT_TRUE(world.session->finished());
}

TEST_F(Http2Flow, AnAnswerThatFillsItsWindowAfterAHalfCloseEndsThen) {
  world.app.answer = nullptr;
  world.exchange(hello() + get(1) + get(3));
  world.session->eof();
  world.settled();
  world.app.answer = serve_big;
  world.app.calls[0]->target = "/big";
  world.app.calls[0]->exchange->signal(Event::writable);
  world.settled();
  EXPECT_EQ(reply(1).body.size(), 65'535u);  // all that the peer has room for
  EXPECT_EQ(reply(1).reset, Http2Error::cancel);
  EXPECT_TRUE(world.app.calls[0]->gone);
  EXPECT_FALSE(world.session->finished());
  LambdaApp::reply(*world.app.calls[1], 204, "");  // needs no window
  world.settled();
  EXPECT_EQ(reply(3).status, 204);
  EXPECT_TRUE(reply(3).ended);
  EXPECT_TRUE(world.session->finished());
}

TEST_F(Http2Flow, AnEndThatFindsNoWindowAfterAHalfCloseIsNotWaitedFor) {
  world.app.answer = nullptr;
  world.exchange(hello() + get(1));
  Exchange& exchange = *world.app.calls[0]->exchange;
  ASSERT_TRUE(exchange.respond({}));
  ASSERT_TRUE(exchange.write(std::string(65'535, 'x')));
  world.settled();
  world.session->eof();
  EXPECT_FALSE(exchange.gone());  // nothing waits yet
  (void)exchange.finish();
  world.settled();
  EXPECT_TRUE(reply(1).ended || reply(1).reset);
  LambdaApp::leave(*world.app.calls[0]);
  EXPECT_TRUE(world.session->finished());
}

TEST_F(Http2Flow, AnswersThatHaveRoomAreSentWholeAfterAHalfClose) {
  world.exchange(hello() + window_update(0, 1 << 24) + settings({{4, 1 << 24}}));
  world.app.answer = nullptr;
  world.exchange(get(1) + get(3));
  world.session->eof();
  world.settled();
  world.app.answer = serve_big;
  for (auto& seen : world.app.calls) {
    seen->target = "/big";
    seen->exchange->signal(Event::writable);
  }
  world.settled();
  for (std::uint32_t id : {1u, 3u}) {
    EXPECT_EQ(reply(id).body.size(), 1'048'576u);
    EXPECT_TRUE(reply(id).ended);
  }
}

TEST_F(Http2Flow, AHalfClosedPeerOwesNoAcknowledgement) {
  world.app.answer = nullptr;
  world.exchange(std::string{k_preface} + settings() + get(1));
  world.session->eof();
  EXPECT_TRUE(world.tick_after(world.limits.timeout_h2_settings + 1));
  EXPECT_TRUE(world.answers.goaways.empty());
  LambdaApp::reply(*world.app.calls[0], 200, "late");
  EXPECT_EQ(world.settled().replies.at(1).body, "late");
}

TEST_F(Http2Flow, TellsOfAHalfCloseBehindOctetsThatAreNotRead) {
  world.app.answer = nullptr;
  world.exchange(hello() + get(1) + post(3));
  world.session->eof_ahead();
  world.settled();
  EXPECT_TRUE(world.app.calls[0]->input_ended);
  EXPECT_FALSE(world.app.calls[1]->input_ended);  // its body may be among them
}

// --- files ---

TEST_F(Http2Flow, AFileThatFallsShortCostsItsStreamOnly) {
  world.app.answer = [&](Seen& seen, Events) {
    if (seen.target != "/file" || !seen.exchange || seen.gone) return LambdaApp::echo(seen);
    if (seen.exchange->send_state() != Send::idle) return;
    (void)seen.exchange->respond({});
    (void)seen.exchange->write("head,");
    (void)seen.exchange->write_file(file_with(std::string(100'000, 'f')), 0, 2'000'000);
    (void)seen.exchange->finish();
  };
  world.exchange(hello() + window_update(0, 1 << 24) + settings({{4, 1 << 24}}));
  world.exchange(get(1, "/file") + post(3) + data(3, "hello", k_end_stream));
  EXPECT_EQ(reply(1).body.size(), 100'005u);
  EXPECT_TRUE(reply(1).body.starts_with("head,fff"));
  EXPECT_EQ(reply(1).reset, Http2Error::internal_error);
  EXPECT_FALSE(reply(1).ended);
  EXPECT_TRUE(world.app.calls[0]->gone);
  EXPECT_EQ(reply(3).body, "hello");
  ASSERT_EQ(world.host.notices.size(), 1u);
  EXPECT_EQ(world.host.notices[0].text, "a file ended before what was promised of it");
  EXPECT_EQ(world.exchange(get(5)).replies.at(5).status, 200);
}

TEST_F(Http2Flow, AFileIsSentWhole) {
  std::string content;
  while (content.size() < 300'000) content += std::to_string(content.size());
  world.app.answer = [&](Seen& seen, Events) {
    if (!seen.exchange || seen.exchange->send_state() != Send::idle) return;
    (void)seen.exchange->respond({});
    (void)seen.exchange->write_file(file_with(content), 0, content.size());
    (void)seen.exchange->write("tail");
    (void)seen.exchange->finish();
  };
  world.exchange(hello() + window_update(0, 1 << 24) + settings({{4, 1 << 24}}) + get(1));
  EXPECT_EQ(reply(1).body, content + "tail");
  EXPECT_TRUE(reply(1).ended);
}

TEST_F(Http2Flow, StreamsTakeTurns) {
  world.exchange(std::string{k_preface} + settings({{4, 1 << 24}}) + settings_ack() + window_update(0, 1 << 24));
  world.session->feed(get(1, "/big") + get(3, "/big"));
  for (int i = 0; i < 8; ++i) {
    world.dispatch();
    world.pull();
  }
  world.answers.read(world.take_out());
  EXPECT_GT(reply(1).body.size(), 100'000u);
  EXPECT_GT(reply(3).body.size(), 100'000u);
}

TEST_F(Http2Flow, FillKeepsToItsBudget) {
  world.exchange(std::string{k_preface} + settings({{4, 1 << 24}}) + settings_ack() + window_update(0, 1 << 24));
  world.session->feed(get(1, "/big"));
  world.dispatch();
  world.pull(20'000);
  EXPECT_GE(world.out.size(), 20'000u);
  EXPECT_LE(world.out.size(), 20'000u + 16'384u + 9u);
  EXPECT_TRUE(world.session->pending());
}

TEST_F(Http2Flow, ReturnsConnectionCreditOnReceiptAndStreamCreditOnceTaken) {
  world.app.take = false;
  world.app.answer = nullptr;
  world.exchange(hello() + post(1));
  world.answers.updates.clear();
  const std::string part(16'384, 'x');
  for (int i = 0; i < 16; ++i) world.exchange(data(1, part));
  EXPECT_EQ(world.answers.updates[1], 0u);
  for (std::uint32_t stream : {3u, 5u}) {
    world.exchange(post(stream));
    for (int i = 0; i < 16; ++i) world.exchange(data(stream, part));
  }
  EXPECT_GE(world.answers.updates[0], 3u * 262'144u - 524'288u);
  EXPECT_TRUE(world.answers.goaways.empty());
  Exchange& exchange = *world.app.calls[0]->exchange;
  EXPECT_EQ(exchange.unread(), 262'144u);
  exchange.take(200'000);
  world.settled();
  EXPECT_EQ(world.answers.updates[1], 200'000u);
}

TEST_F(Http2Flow, OpensNoWindowForABodyThatHasEnded) {
  world.app.take = false;
  world.app.answer = nullptr;
  world.exchange(hello() + post(1));
  for (int i = 0; i < 15; ++i) world.exchange(data(1, std::string(16'384, 'x')));
  world.exchange(data(1, "x", k_end_stream));
  world.app.calls[0]->exchange->take(world.app.calls[0]->exchange->unread());
  world.settled();
  EXPECT_EQ(world.answers.updates[1], 0u);
}

TEST_F(Http2Flow, StopsAStreamThatOverrunsItsWindow) {
  world.app.take = false;
  world.app.answer = nullptr;
  world.exchange(hello() + post(1));
  const std::string part(16'384, 'x');
  for (int i = 0; i < 17; ++i) world.exchange(data(1, part));
  // The stream or, with newer releases of nghttp2, the connection (RFC 9113 6.9.1 allows both).
  const auto code = reply(1).reset ? reply(1).reset : world.answers.last_goaway();
  EXPECT_EQ(code, Http2Error::flow_control_error);
}

TEST_F(Http2Flow, EndsTheConnectionWhenSettingsOverflowAWindow) {
  const std::string bytes = settings({{4, 0x7fffffff}});
  for (const Cut& cut : every_cut(bytes)) {
    Http2World w;
    w.app.answer = nullptr;
    w.exchange(hello() + post(1) + window_update(1, 0x7fff0000));
    for (auto piece : cut) w.exchange(piece);
    EXPECT_EQ(w.answers.last_goaway(), Http2Error::flow_control_error);
    EXPECT_TRUE(w.session->finished());
  }
}

TEST_F(Http2Flow, GrowsWindowsToTheVeryLimit) {
  world.exchange(hello() + post(1) + settings({{4, 0x7fffffff}}) + settings({{4, 0}}) + settings({{4, 0x7fffffff}}));
  world.exchange(data(1, "x", k_end_stream));
  EXPECT_EQ(reply(1).body, "x");
  EXPECT_TRUE(world.answers.goaways.empty());
}

// --- what ends a connection ---

TEST_F(Http2Flow, EndsForProtocolErrorsWithTheRightCode) {
  struct Row {
    Http2Error code;
    std::string bytes;
  };
  const Row rows[] = {
      {Http2Error::protocol_error, get(5) + get(3)},
      {Http2Error::protocol_error, get(2)},
      {Http2Error::protocol_error, data(0, "x")},
      {Http2Error::protocol_error, data(1, "x")},
      {Http2Error::protocol_error, reset(9)},
      {Http2Error::protocol_error, window_update(0, 0)},
      {Http2Error::flow_control_error, window_update(0, 0x7fffffff) + window_update(0, 0x7fffffff)},
      {Http2Error::frame_size_error, frame(FrameType::ping, 0, 0, "1234567")},
      {Http2Error::frame_size_error, frame(FrameType::settings, 0, 0, "12345")},
      {Http2Error::flow_control_error, settings({{4, 0x80000000}})},
      {Http2Error::protocol_error, settings({{5, 100}})},
      {Http2Error::protocol_error, frame(FrameType::continuation, k_end_headers, 1, "")},
      {Http2Error::protocol_error, frame(FrameType::headers, 0, 1, "") + ping()},
      {Http2Error::protocol_error, frame(FrameType::priority, 0, 0, number(1, 4) + "\x10")},
      {Http2Error::protocol_error, frame(FrameType::priority, 0, 3, number(3, 4) + "\x10")},
      {Http2Error::protocol_error, frame(FrameType::headers, k_end_headers | k_priority, 1, number(1, 4) + "\x10")},
      {Http2Error::compression_error, frame(FrameType::headers, k_end_headers, 1, "\x80")},
      {Http2Error::stream_closed, get(1) + data(1, "x")},
      {Http2Error::frame_size_error, frame(FrameType::headers, k_end_headers, 1, std::string(16'385, ' '))},
      {Http2Error::protocol_error, frame(FrameType::push_promise, k_end_headers, 1, number(2, 4))},
  };
  for (const Row& row : rows) {
    Http2World w;
    w.exchange(hello() + row.bytes);
    EXPECT_EQ(w.answers.last_goaway(), row.code) << &row - rows;
    EXPECT_TRUE(w.session->finished()) << &row - rows;
    EXPECT_EQ(w.host.notices.size(), 1u) << &row - rows;
  }
}

TEST_F(Http2Flow, EndsForFramesOnStreamsThatThePeerHasEnded) {
  for (const std::string& late : {data(1, "x"), get(1), headers(1, {{"x", "y"}}, k_end_stream)}) {
    Http2World w;
    w.exchange(hello() + get(1));
    w.exchange(late);
    EXPECT_EQ(w.answers.last_goaway(), Http2Error::stream_closed);
  }
}

TEST_F(Http2Flow, EndsForABadPreface) {
  world.exchange("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n" + settings());
  EXPECT_FALSE(world.fed);
  EXPECT_EQ(world.answers.last_goaway(), Http2Error::protocol_error);
  EXPECT_TRUE(world.session->finished());
}

TEST_F(Http2Flow, EndsWithoutFirstSettings) {
  world.exchange(std::string{k_preface} + get(1));
  EXPECT_EQ(world.answers.last_goaway(), Http2Error::protocol_error);
  EXPECT_TRUE(world.app.calls.empty());
}

TEST_F(Http2Flow, ServesHeadsInPieces) {
  const std::string bytes = block(head("GET", "/"));
  std::string frames = frame(FrameType::headers, k_end_stream, 1, bytes.substr(0, 4));
  for (int i = 0; i < 7; ++i)
    frames += frame(FrameType::continuation, 0, 1, bytes.substr(4 + static_cast<std::size_t>(i), 1));
  frames += frame(FrameType::continuation, k_end_headers, 1, bytes.substr(11));
  for (const Cut& cut : every_cut(frames)) {
    Http2World w;
    w.exchange(hello());
    for (auto piece : cut) w.exchange(piece);
    EXPECT_EQ(w.reply(1).status, 200);
  }
}

TEST_F(Http2Flow, EndsForEndlessContinuations) {
  std::string bytes = frame(FrameType::headers, k_end_stream, 1, block(head("GET", "/")));
  for (int i = 0; i < 9; ++i) bytes += frame(FrameType::continuation, 0, 1);
  world.exchange(hello() + bytes);
  EXPECT_EQ(world.answers.last_goaway(), Http2Error::enhance_your_calm);
}

struct Flood {
  const char* name;
  std::function<std::string(std::uint32_t)> frame;
};

TEST_F(Http2Flow, EndsFloods) {
  const Flood floods[] = {
      {"rapid reset", [](std::uint32_t i) { return get(2 * i + 1) + reset(2 * i + 1); }},
      {"malformed", [](std::uint32_t i) { return get(2 * i + 1, "/", {{"X", "1"}}); }},
      {"bad length",
       [](std::uint32_t i) { return post(2 * i + 1, {{"content-length", "1"}}) + data(2 * i + 1, "xx"); }},
      {"empty data", [](std::uint32_t i) { return (i == 0 ? post(1) : "") + data(1, ""); }},
      {"ping", [](std::uint32_t) { return ping(); }},
      {"settings", [](std::uint32_t) { return settings(); }},
      {"priority", [](std::uint32_t i) { return frame(FrameType::priority, 0, 2 * i + 1, number(0, 4) + "\x10"); }},
      {"unknown", [](std::uint32_t) { return frame(static_cast<FrameType>(0x77), 0, 0, "x"); }},
      {"window update", [](std::uint32_t) { return window_update(0, 1); }},
      {"refused", [](std::uint32_t i) { return post(2 * i + 1); }},
  };
  for (const Flood& flood : floods) {
    Http2World w;
    w.app.answer = LambdaApp{}.answer;
    w.exchange(hello());
    std::uint32_t i = 0;
    for (; i < 3'000 && w.answers.goaways.empty(); ++i) w.exchange(flood.frame(i));
    EXPECT_EQ(w.answers.last_goaway(), Http2Error::enhance_your_calm) << flood.name;
    EXPECT_GE(i, 1'000u) << flood.name;
    EXPECT_TRUE(w.session->finished()) << flood.name;
    EXPECT_LE(w.app.calls.size(), 1'101u) << flood.name;
  }
}

TEST_F(Http2Flow, StopsReadingWhileItsAcksAreNotRead) {
  world.exchange(hello());
  std::string pings;
  for (int i = 0; i < 501; ++i) pings += ping();
  ASSERT_TRUE(world.session->feed(pings));
  EXPECT_FALSE(world.session->reading());
  world.settled();
  EXPECT_TRUE(world.session->reading());
  EXPECT_EQ(world.answers.pongs.size(), 501u);
}

TEST_F(Http2Flow, TakesAStreamsPingsAndUpdatesForOrdinary) {
  std::size_t seen = 0;
  world.app.answer = [](Seen& s, Events events) {
    if (has(events, Event::request)) (void)s.exchange->respond({});
    if (!s.body.empty()) (void)s.exchange->write(std::exchange(s.body, {}));
  };
  world.exchange(std::string{k_preface} + settings({{4, 1 << 20}}) + settings_ack() + window_update(0, 1 << 20) +
                 post(1));
  for (int i = 0; i < 20'000; ++i) {
    world.exchange(data(1, "a message of some size") + ping());
    const std::size_t got = world.answers.replies[1].body.size();
    world.exchange(window_update(0, static_cast<std::uint32_t>(got - seen)) +
                   window_update(1, static_cast<std::uint32_t>(got - seen)));
    seen = got;
    ASSERT_TRUE(world.answers.goaways.empty()) << i;
  }
  EXPECT_EQ(seen, 20'000u * 22u);
}

// --- drain ---

TEST_F(Http2Flow, DrainsInTwoSteps) {
  world.exchange(hello() + post(1));
  world.session->drain();
  world.settled();
  ASSERT_EQ(world.answers.goaways.size(), 1u);
  EXPECT_EQ(world.answers.goaways[0].first, 0x7fffffffu);
  ASSERT_EQ(world.answers.pings.size(), 1u);
  world.exchange(post(3));  // was under way
  world.exchange(ping(world.answers.pings[0], k_ack));
  ASSERT_EQ(world.answers.goaways.size(), 2u);
  EXPECT_EQ(world.answers.goaways[1], (std::pair{3u, Http2Error::no_error}));
  world.exchange(get(5) + data(1, "a", k_end_stream));
  EXPECT_FALSE(world.session->finished());
  world.exchange(data(3, "b", k_end_stream));
  EXPECT_EQ(reply(1).body, "a");
  EXPECT_EQ(reply(3).body, "b");
  EXPECT_EQ(world.app.calls.size(), 2u);
  EXPECT_TRUE(world.session->finished());
}

TEST_F(Http2Flow, DrainsWithoutAPingAnswer) {
  world.exchange(hello() + get(1));
  world.session->drain();
  world.session->drain();
  world.settled();
  world.tick_after(900);
  EXPECT_EQ(world.answers.goaways.size(), 1u);
  world.tick_after(1'100);
  EXPECT_EQ(world.answers.goaways.size(), 2u);
  EXPECT_TRUE(world.session->finished());
}

TEST_F(Http2Flow, DrainsByItselfWhenIdsRunOut) {
  world.exchange(hello() + get(0x7fffffff));
  EXPECT_EQ(reply(0x7fffffff).status, 200);
  EXPECT_EQ(world.answers.goaways.size(), 1u);
}

TEST_F(Http2Flow, DrainsFromTheStartWhenTheServerStops) {
  world.host.draining = true;
  world.exchange(hello() + get(1));
  EXPECT_EQ(reply(1).status, 200);
  EXPECT_EQ(world.answers.goaways.size(), 1u);
}

TEST_F(Http2Flow, FinishesItsStreamsAfterThePeersGoaway) {
  world.exchange(hello() + post(1));
  world.exchange(frame(FrameType::goaway, 0, 0, number(0, 8)) + data(1, "bye", k_end_stream));
  EXPECT_EQ(reply(1).body, "bye");
  EXPECT_TRUE(world.session->finished());
}

// --- clocks ---

TEST_F(Http2Flow, EndsAConnectionThatSaysNothing) {
  for (std::string_view start : {std::string_view{}, k_preface.substr(0, 10), k_preface}) {
    Http2World w;
    w.open();
    w.exchange(start);
    EXPECT_TRUE(w.tick_after(9'000));
    EXPECT_EQ(w.tick_after(10'100).error().fault, Fault::timeout);
  }
}

TEST_F(Http2Flow, EndsWhenItsSettingsAreNotAcknowledged) {
  world.exchange(std::string{k_preface} + settings() + post(1));
  world.tick_after(9'000);
  EXPECT_TRUE(world.answers.goaways.empty());
  world.tick_after(10'100);
  EXPECT_EQ(world.answers.last_goaway(), Http2Error::settings_timeout);
  EXPECT_TRUE(world.session->finished());
}

TEST_F(Http2Flow, EndsAnOpenHeaderBlock) {
  world.exchange(hello() + frame(FrameType::headers, k_end_stream, 1, "\x82"));
  world.tick_after(29'000);
  EXPECT_TRUE(world.answers.goaways.empty());
  world.tick_after(30'100);
  EXPECT_EQ(world.answers.goaways.size(), 1u);
  EXPECT_TRUE(world.session->finished());
}

TEST_F(Http2Flow, EndsWhenIdle) {
  world.exchange(hello() + get(1));
  world.tick_after(59'000);
  EXPECT_TRUE(world.answers.goaways.empty());
  world.tick_after(60'100);
  EXPECT_EQ(world.answers.last_goaway(), Http2Error::no_error);
  EXPECT_TRUE(world.session->finished());
}

TEST_F(Http2Flow, AnswersForABodyThatDoesNotCome) {
  world.exchange(hello() + post(1));
  world.tick_after(59'000);
  EXPECT_EQ(reply(1).status, 0);
  world.tick_after(60'100);
  EXPECT_EQ(reply(1).status, 408);
  EXPECT_TRUE(world.app.calls[0]->gone);
  world.tick_after(61'500);
  world.tick_after(61'800);
  EXPECT_TRUE(world.session->finished());
}

TEST_F(Http2Flow, EndsABodyThatDrips) {
  world.exchange(hello() + post(1, {{"content-length", "1000"}}));
  for (Millis later = 0; later < 36'000 && reply(1).status == 0; later += 1'000) {
    world.exchange(data(1, "x"));
    world.tick_after(later);
  }
  EXPECT_EQ(reply(1).status, 408);
}

TEST_F(Http2Flow, LetsCallsBeSilent) {
  world.app.answer = [](Seen& seen, Events events) {
    if (has(events, Event::request) && seen.target == "/begun") (void)seen.exchange->respond({});
  };
  world.exchange(hello() + post(1, {{"content-type", "application/grpc"}}) +
                 post(3, {{"content-type", "application/connect+proto"}}) + post(5, {}, "/begun"));
  world.tick_after(3'600'000);
  EXPECT_FALSE(world.session->idle());
  for (std::uint32_t stream : {1u, 3u, 5u}) EXPECT_FALSE(reply(stream).reset || reply(stream).ended) << stream;
}

TEST_F(Http2Flow, EndsAStreamWhoseWindowStaysShut) {
  world.exchange(std::string{k_preface} + settings({{4, 0}}) + settings_ack() + get(1, "/big"));
  world.tick_after(1'000);
  world.tick_after(59'000);
  EXPECT_FALSE(reply(1).reset);
  world.tick_after(61'000);
  EXPECT_EQ(reply(1).reset, Http2Error::cancel);
  EXPECT_TRUE(world.app.calls[0]->gone);
  world.tick_after(62'000);
  EXPECT_TRUE(world.session->finished());
}

TEST_F(Http2Flow, LetsASlowApplicationBe) {
  world.app.answer = nullptr;
  world.app.take = false;
  world.exchange(hello() + post(1) + data(1, "unread") + get(3));
  world.tick_after(3'600'000);
  EXPECT_FALSE(reply(1).reset || reply(1).ended || reply(3).ended);
  EXPECT_TRUE(world.answers.goaways.empty());
}

}  // namespace
}  // namespace tricorn
