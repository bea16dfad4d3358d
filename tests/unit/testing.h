// What the unit tests share: a world for one session with no sockets, an application made of a lambda,
// and every way to cut a message into pieces.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "http/exchange.h"
#include "http/host.h"
#include "http/session.h"

namespace tricorn::testing {

// One request as the application saw it, and the reference it holds while it answers.
struct Seen final : Call {
  Ref<Exchange> exchange;
  std::string method, target, body;
  Headers headers;
  Version version = Version::http11;
  bool body_ended = false, input_ended = false, gone = false;
};

// Records every request; `answer` is called each time an exchange is ready, after the body was taken (if `take`).
class LambdaApp final : public App {
 public:
  std::function<void(Seen&, Events)> answer = [](Seen& seen, Events) { echo(seen); };
  bool take = true;  // take body octets as they arrive
  std::vector<std::unique_ptr<Seen>> calls;

  void dispatch(Exchange& exchange) override {
    const Events events = exchange.take_events();
    if (!exchange.call()) start(exchange);
    Seen& seen = static_cast<Seen&>(*exchange.call());
    if (take) {
      seen.body += exchange.body();
      exchange.take(exchange.body().size());
    }
    seen.body_ended = exchange.body_ended();
    seen.input_ended = exchange.input_ended();
    seen.gone = exchange.gone();
    if (answer) answer(seen, events);
  }

  // Answers 200 with the body once it is complete.
  static void echo(Seen& seen) {
    if (!seen.body_ended || seen.exchange->send_state() != Send::idle) return;
    reply(seen, 200, seen.body);
  }
  static void reply(Seen& seen, int status, std::string_view body) {
    ResponseHead head{.status = status, .headers = {}};
    head.headers.add("content-length", std::to_string(body.size()));
    (void)seen.exchange->respond(std::move(head));
    (void)seen.exchange->write(body);
    (void)seen.exchange->finish();
    leave(seen);
  }
  static void leave(Seen& seen) {
    seen.exchange->leave();
    seen.exchange.reset();
  }

 private:
  void start(Exchange& exchange) {
    calls.push_back(std::make_unique<Seen>());
    Seen& call = *calls.back();
    call.exchange = Ref<Exchange>{&exchange};
    const RequestHead& head = exchange.request();
    call.method = head.method;
    call.target = head.target;
    call.version = head.version;
    for (Field field : head.headers) call.headers.add(field.name, field.value);
    exchange.enter(call);
  }
};

// A server's world with one session in it. Members are public: tests set limits before `open`.
struct World {
  LambdaApp app;
  Limits limits;
  Clock clock;
  Router router{app};
  List<Exchange, Ready> ready;
  List<DirtyHook, Dirty> dirty;
  Host host{.router = router, .limits = limits, .clock = clock, .ready = ready, .dirty = dirty};
  DirtyHook hook;
  Peer peer{.client_host = "127.0.0.1", .client_port = 5000, .server_host = "127.0.0.1", .server_port = 80};
  std::unique_ptr<Session> session;
  Result<void> fed;  // the last result of feed()
  std::string out;   // all that was sent

  explicit World(Protocol protocol) : protocol_(protocol) {}
  ~World() {
    if (session) session->gone();
    dispatch();
    session.reset();
    for (auto& call : app.calls) call->exchange.reset();
  }

  void open() {
    host.date_header = false;
    host.server_header = false;
    session = make_session(protocol_, host, hook, peer);
  }
  // Feeds, dispatches and pulls until nothing moves.
  void feed(std::string_view bytes) {
    if (!session) open();
    if (fed) fed = session->feed(bytes);
    settle();
  }
  void settle() {
    for (int round = 0; round < 1000; ++round) {
      const bool dispatched = dispatch();
      const bool sent = pull();
      if (!dispatched && !sent) return;
    }
  }
  bool dispatch() {
    bool any = false;
    List<Exchange, Ready> now;
    ready.move_to(now);
    while (Exchange* exchange = now.pop()) {
      exchange->app().advance(*exchange);
      exchange->app().dispatch(*exchange);
      any = true;
    }
    return any;
  }
  bool pull(std::size_t budget = 65'536) {
    hook.unlink();
    Outbox box;
    session->fill(box, budget);
    const bool any = !box.empty();
    while (!box.empty()) {
      const std::string_view bytes = box.front();
      if (bytes.empty()) break;
      out += bytes;
      box.consume(bytes.size());
    }
    return any;
  }
  std::string take_out() { return std::exchange(out, {}); }

 private:
  Protocol protocol_;
};

// Every way to cut `bytes` in two, byte by byte, and whole.
using Cut = std::vector<std::string_view>;
inline std::vector<Cut> every_cut(std::string_view bytes) {
  std::vector<Cut> cuts{{bytes}, {}};
  for (std::size_t i = 0; i < bytes.size(); ++i) cuts[1].push_back(bytes.substr(i, 1));
  for (std::size_t i = 1; i < bytes.size(); ++i) cuts.push_back({bytes.substr(0, i), bytes.substr(i)});
  return cuts;
}

}  // namespace tricorn::testing
