// Octets from a peer into an HTTP/2 session: the first octet chooses how they are cut and what happens in between, the
// second how the application answers, the rest is fed after a good greeting.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "../unit/testing.h"

using namespace tricorn;
using tricorn::testing::LambdaApp;
using tricorn::testing::Seen;
using tricorn::testing::World;

namespace {

constexpr std::string_view k_greeting{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0\0\0\0\4\1\0\0\0\0", 42};

void require(bool condition) {
  if (!condition) std::abort();
}

void stream(Seen& seen, Events events) {
  if (!seen.exchange || seen.gone) return;
  Exchange& exchange = *seen.exchange;
  if (has(events, Event::request)) {
    (void)exchange.inform(103, {});
    (void)exchange.respond({});
  }
  while (exchange.writable() && seen.target.size() < 64) {
    seen.target += '.';
    (void)exchange.write(std::string(5'000, 'x'));
  }
  if (!seen.body_ended && !seen.input_ended) return;
  Headers trailers;
  trailers.add("x", "y");
  (void)exchange.finish(std::move(trailers));
  LambdaApp::leave(seen);
}

void give_up(Seen& seen, Events) {
  if (!seen.exchange) return;
  if (seen.body.size() % 2 == 0) (void)seen.exchange->respond({});
  seen.exchange->abandon(Fault::state);
  LambdaApp::leave(seen);
}

void hasty(Seen& seen, Events) {
  if (seen.exchange) LambdaApp::reply(seen, 200, "early");
}

void echo(Seen& seen, Events) {
  if (!seen.exchange) return;
  seen.exchange->want_body();
  LambdaApp::echo(seen);
}

void choose(World& world, unsigned choice) {
  constexpr void (*answers[])(Seen&, Events) = {echo, stream, give_up, hasty};
  world.app.answer = answers[choice % 4];
  world.app.take = choice % 8 < 4;
  if (choice & 8) world.limits.request_body = 10;
  if (choice & 16) world.limits.h2_max_concurrent_streams = 2;
  if (choice & 32) world.limits.concurrency = 1;
  if (choice & 64) world.limits.h2_max_queued_acks = 3;
}

void interfere(World& world, unsigned choice, unsigned turn) {
  if (turn != 3) return;
  if (choice & 16) world.session->drain();
  if (choice & 32) (void)world.session->tick(world.clock.now() + 61'000);
  if (choice & 64) world.session->eof();
}

// Whatever came in, what goes out is whole frames.
void check_frames(std::string_view out) {
  while (!out.empty()) {
    require(out.size() >= 9);
    const auto at = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(out[i])); };
    const std::size_t size = at(0) << 16 | at(1) << 8 | at(2);
    require(size <= 16'384 && out.size() >= 9 + size);
    out.remove_prefix(9 + size);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const unsigned cutting = data[0], choice = data[1];
  std::string_view bytes{reinterpret_cast<const char*>(data) + 2, size - 2};
  {
    World world{Protocol::http2};
    choose(world, choice);
    if (!(cutting & 128)) world.feed(k_greeting);
    else world.open();
    constexpr std::size_t sizes[] = {SIZE_MAX, 1, 3, 7, 9, 10, 64, 1000};
    for (unsigned turn = 0; !bytes.empty() && world.fed; ++turn) {
      const std::string_view piece = bytes.substr(0, sizes[cutting % 8]);
      bytes.remove_prefix(piece.size());
      if (cutting & 8) (void)(world.fed = world.session->feed(piece));
      else world.feed(piece);
      interfere(world, cutting, turn);
    }
    world.settle();
    (void)world.session->tick(world.clock.now() + 100'000);
    world.settle();
    check_frames(world.out);
    world.session->gone();
    world.dispatch();
    require(world.session->finished());
    for (auto& call : world.app.calls)
      if (call->exchange) LambdaApp::leave(*call);
    require(world.host.requests == 0);
  }
  return 0;
}
