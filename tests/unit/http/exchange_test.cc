#include "http/exchange.h"

#include <gtest/gtest.h>

#include "testing.h"

namespace tricorn {
namespace {

// The session's side of an exchange, recorded.
struct Recorder final : Wire {
  int wakes = 0;
  std::size_t taken = 0;
  bool wanted = false;
  std::optional<Fault> abandoned;
  void wake(Exchange&) override { ++wakes; }
  void consumed(Exchange&, std::size_t size) override { taken += size; }
  void want_body(Exchange&) override { wanted = true; }
  void abandon(Exchange&, Fault fault) override { abandoned = fault; }
};

struct Fixture : ::testing::Test {
  testing::World world{Protocol::http1};
  Recorder wire;
  testing::Seen call;
  Ref<Exchange> make(std::string method = "GET") {
    RequestHead head{.method = std::move(method), .target = "/", .protocol = {}, .headers = {}};
    auto exchange = make_ref<Exchange>(world.host, wire, world.peer, std::move(head));
    exchange->enter(call);
    return exchange;
  }
  void SetUp() override { world.open(); }
};

using ExchangeTest = Fixture;

ResponseHead ok(std::optional<std::size_t> length = std::nullopt) {
  ResponseHead head;
  if (length) head.headers.add("content-length", std::to_string(*length));
  return head;
}

TEST_F(ExchangeTest, WritesOnlyBetweenRespondAndFinish) {
  auto exchange = make();
  EXPECT_EQ(exchange->write("x").error().fault, Fault::state);
  EXPECT_EQ(exchange->finish().error().fault, Fault::state);
  EXPECT_TRUE(exchange->respond(ok()));
  EXPECT_EQ(exchange->respond(ok()).error().fault, Fault::state);
  EXPECT_TRUE(exchange->write("x"));
  EXPECT_TRUE(exchange->finish());
  EXPECT_EQ(exchange->write("x").error().fault, Fault::state);
  EXPECT_EQ(exchange->finish().error().fault, Fault::state);
}

TEST_F(ExchangeTest, HoldsTheBodyToItsDeclaredLength) {
  auto longer = make();
  EXPECT_TRUE(longer->respond(ok(3)));
  EXPECT_EQ(longer->write("four").error().what, "Response content longer than Content-Length");
  auto shorter = make();
  EXPECT_TRUE(shorter->respond(ok(3)));
  EXPECT_TRUE(shorter->write("ab"));
  EXPECT_EQ(shorter->finish().error().what, "Response content shorter than Content-Length");
}

TEST_F(ExchangeTest, CountsButDropsTheBodyOfAHeadAnswer) {
  auto exchange = make("HEAD");
  EXPECT_TRUE(exchange->respond(ok(3)));
  EXPECT_TRUE(exchange->write("abc"));
  EXPECT_TRUE(exchange->finish());
  EXPECT_TRUE(exchange->out().empty());
}

TEST_F(ExchangeTest, RefusesAContentLengthThatIsNotANumber) {
  auto exchange = make();
  ResponseHead head;
  head.headers.add("content-length", "5x");
  EXPECT_EQ(exchange->respond(std::move(head)).error().fault, Fault::value);
  EXPECT_EQ(exchange->send_state(), Send::idle);
}

TEST_F(ExchangeTest, FailsWithGoneOnceTheWireIsGone) {
  auto exchange = make();
  EXPECT_TRUE(exchange->respond(ok()));
  exchange->take_events();
  exchange->detach_wire();
  EXPECT_EQ(exchange->write("x").error().fault, Fault::gone);
  EXPECT_TRUE(has(exchange->take_events(), Event::gone));
  EXPECT_TRUE(exchange->writable());
}

TEST_F(ExchangeTest, TellsTheApplicationOnceWhenOutputFallsBelowTheMark) {
  world.limits.write_buffer = 100;
  auto exchange = make();
  EXPECT_TRUE(exchange->respond(ok()));
  EXPECT_TRUE(exchange->write(std::string(150, 'x')));
  EXPECT_FALSE(exchange->writable());
  exchange->take_events();
  exchange->out().consume(60);
  exchange->pulled();
  EXPECT_EQ(exchange->take_events(), 0);
  exchange->out().consume(60);
  exchange->pulled();
  EXPECT_TRUE(has(exchange->take_events(), Event::writable));
  exchange->pulled();
  EXPECT_EQ(exchange->take_events(), 0);
}

TEST_F(ExchangeTest, ThrowsTheBodyAwayOnceTheApplicationHasLeft) {
  auto exchange = make("POST");
  exchange->receive("abc");
  EXPECT_EQ(exchange->body(), "abc");
  exchange->leave();
  EXPECT_EQ(wire.taken, 3u);
  exchange->receive("defg");
  EXPECT_EQ(wire.taken, 7u);
  EXPECT_TRUE(exchange->body().empty());
  EXPECT_TRUE(world.ready.empty());
}

TEST_F(ExchangeTest, CountsRunningCallsOnce) {
  auto exchange = make();
  EXPECT_EQ(world.host.requests, 1u);
  exchange->leave();
  exchange->leave();
  EXPECT_EQ(world.host.requests, 0u);
}

TEST_F(ExchangeTest, SendsNoInformationalAnswerToHttp10) {
  RequestHead head{.method = "GET", .target = "/", .protocol = {}, .version = Version::http10, .headers = {}};
  auto exchange = make_ref<Exchange>(world.host, wire, world.peer, std::move(head));
  EXPECT_TRUE(exchange->inform(103, {}));
  EXPECT_TRUE(exchange->informational().empty());
}

}  // namespace
}  // namespace tricorn
