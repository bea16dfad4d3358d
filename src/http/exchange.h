// One request and its response, whatever HTTP version carries them.
// Owns the two body queues and the rule for what may be sent when. Knows nothing of sockets, TLS or Python.
// Two owners: the session (until the last octet is on the wire or the wire is gone) and the application's call.
//
// Events flow up by `signal` (the exchange is linked into the ready list), output flows down by `wire.wake`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "base/list.h"
#include "base/outbox.h"
#include "base/ref.h"
#include "http/app.h"
#include "http/head.h"

namespace tricorn {

class Exchange;
struct Host;
struct Peer;
struct Ready;

// What an exchange may ask of the session that carries it.
class Wire {
 public:
  virtual void wake(Exchange&) = 0;                        // there is output, or the answer is complete
  virtual void consumed(Exchange&, std::size_t size) = 0;  // body octets were taken: open the window, read on
  virtual void want_body(Exchange&) = 0;                   // the application waits for the body: 100 Continue if asked
  virtual void abandon(Exchange&, Fault) = 0;              // the answer cannot be completed: reset or cut it

 protected:
  ~Wire() = default;
};

// What a session keeps for one exchange while it carries it; the session derives from it (an HTTP/2 stream).
class Lane {
 protected:
  ~Lane() = default;
};

// Where the response stands. Legal moves are the rows of next().
enum class Send : std::uint8_t { idle, head, body, done };
enum class Step : std::uint8_t { inform, respond, write, finish };

constexpr std::optional<Send> next(Send from, Step step) {
  struct Row {
    Send from;
    Step step;
    Send to;
  };
  constexpr std::array rows{
      Row{Send::idle, Step::inform, Send::idle}, Row{Send::idle, Step::respond, Send::head},
      Row{Send::head, Step::write, Send::body},  Row{Send::head, Step::finish, Send::done},
      Row{Send::body, Step::write, Send::body},  Row{Send::body, Step::finish, Send::done},
  };
  for (auto row : rows)
    if (row.from == from && row.step == step) return row.to;
  return std::nullopt;
}
static_assert(next(Send::idle, Step::respond) == Send::head);
static_assert(!next(Send::idle, Step::write) && !next(Send::done, Step::write) && !next(Send::head, Step::respond));

// Why an exchange is ready. Bits, gathered until the application takes them.
enum class Event : std::uint8_t {
  request = 1,      // the head is there
  body = 2,         // body octets arrived, or the body ended
  writable = 4,     // unsent output fell below the mark
  input_ended = 8,  // the peer closed its side, or the server tells its applications to end: http.disconnect
  gone = 16,        // the wire is closed or reset: writing fails
};
using Events = std::uint8_t;
constexpr bool has(Events events, Event event) { return (events & static_cast<Events>(event)) != 0; }

class Exchange final : public Counted, public Hook<Ready> {
 public:
  // `wire` and `host` outlive the exchange's attachment to them (see detach_wire).
  Exchange(Host& host, Wire& wire, const Peer& peer, RequestHead head);
  ~Exchange() override;

  // --- for the application ---
  const RequestHead& request() const { return request_; }
  const Peer& peer() const { return *peer_; }  // valid until gone()
  App& app() const { return *app_; }
  Call* call() const { return call_; }
  // The application's call begins or ends. After leave() body octets are thrown away as they arrive.
  void enter(Call& call);
  void leave();
  Events take_events() { return std::exchange(events_, Events{0}); }

  std::string_view body() const { return in_.view(); }  // octets that have arrived and were not taken
  bool body_ended() const { return body_ended_; }       // no more will arrive
  void take(std::size_t size);                          // the application has them now
  void want_body();
  bool input_ended() const { return input_ended_; }
  bool gone() const { return wire_ == nullptr; }

  // Each fails with Fault::gone once the wire is gone, Fault::state out of order, Fault::value for what cannot be sent.
  Result<void> inform(int status, Headers headers);                   // 1xx, any number before respond
  Result<void> respond(ResponseHead head);                            // once
  Result<void> write(std::string_view bytes, Ref<Block> owner = {});  // copied when small or without owner
  Result<void> write_file(Ref<File> file, std::uint64_t offset, std::uint64_t size);
  Result<void> finish(Headers trailers = {});  // once; nothing after
  // The answer cannot be completed: cut it so that the peer can tell.
  void abandon(Fault fault);
  // Whether more output is welcome; if not, Event::writable comes once it is (or gone).
  bool writable();
  Send send_state() const { return send_; }
  // HEAD, 204, 304 and the like: what is written is counted and thrown away (RFC 9110 6.4.1).
  bool bodiless() const { return bodiless_; }

  // --- for the session ---
  void signal(Event event);
  void receive(std::string_view bytes);  // part of the request body
  void receive_end();                    // the body is complete
  void end_input();                      // half-close, or a stop: no more body will come
  void detach_wire();                    // closed or reset: later writes fail, the application is told
  void carry(Lane& lane) { lane_ = &lane; }
  Lane* lane() const { return lane_; }
  std::size_t unread() const { return in_.size(); }

  const ResponseHead& response() const { return response_; }
  std::optional<std::uint64_t> content_length() const { return declared_; }  // of the response
  std::vector<ResponseHead>& informational() { return informational_; }
  Outbox& out() { return out_; }
  const Headers& trailers() const { return trailers_; }
  // The session took octets from out(): signals writable when due.
  void pulled();

 private:
  Result<void> step(Step step);            // every state change goes through here
  Result<bool> count(std::uint64_t size);  // true: put it on the wire; false: counted only

  Host& host_;
  Wire* wire_;
  const Peer* peer_;
  App* app_;
  Call* call_ = nullptr;
  Lane* lane_ = nullptr;
  RequestHead request_;
  ResponseHead response_;
  std::vector<ResponseHead> informational_;
  Headers trailers_;
  Buffer in_;
  Outbox out_;
  std::optional<std::uint64_t> declared_;
  std::uint64_t written_ = 0;
  Send send_ = Send::idle;
  Events events_ = 0;
  bool body_ended_ = false;
  bool input_ended_ = false;
  bool bodiless_ = false;
  bool left_ = false;
  bool choked_ = false;  // the application was told to wait for Event::writable
};

// A complete answer that needs no application: text/plain with the phrase, for refusals (503, 400, ...).
ResponseHead plain_head(int status, std::string_view text);

}  // namespace tricorn
