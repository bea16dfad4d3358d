// HTTP/2: frames in and out of exchanges, one stream each (RFC 9113). Owns the streams, the limits and the clocks;
// Http2Codec owns the protocol's state machine. Nothing here blocks a neighbour: connection credit is returned as
// octets arrive, stream credit as the application takes them.
// The connection ends by `terminate` (a GOAWAY with a reason), by `drain` (two GOAWAYs), or when the wire is gone.
#pragma once

#include <optional>
#include <vector>

#include "http/http2.h"
#include "http/http2_guard.h"
#include "http/http2_request.h"
#include "http/session.h"

namespace tricorn {

struct Pending;
struct Open;

// One request and its answer on the wire.
class Http2Stream final : public Lane, public Hook<Pending>, public Hook<Open> {
 public:
  explicit Http2Stream(std::uint32_t number) : id(number) {}
  const std::uint32_t id;
  Ref<Exchange> exchange;                 // none until the head is complete
  std::optional<Http2Error> doom;         // to be reset
  std::optional<std::uint64_t> declared;  // the request's content-length
  std::uint64_t received = 0;             // octets of the request body
  std::uint64_t surplus = 0;              // of those, after the answer was out and nobody read on
  Millis body_at = 0;                     // latest progress of the request body, by either side
  Millis body_waited = 0;                 // how long in all we have waited for it
  Millis moved_at = 0;                    // latest progress of the answer
  Millis sent_at = 0;                     // the answer was complete
  bool ended = false;                     // the peer has ended its side
  bool answered = false;                  // HEADERS of the answer are submitted
  bool waiting = false;                   // DATA stands still until there is output
  bool sent = false;                      // END_STREAM is sent
  bool refused = false;                   // the answer is ours, not the application's
  bool continue_wanted = false;           // the request expects 100-continue
  bool continue_due = false;
};

class Http2Session final : public Session {
 public:
  Http2Session(Host& host, DirtyHook& dirty, const Peer& peer);
  ~Http2Session() override;

  Result<void> feed(std::string_view plain) override;
  void eof() override;
  void eof_ahead() override;
  void gone() override;
  void fill(Outbox& out, std::size_t budget) override;
  bool pending() const override { return !broken_ && (!pending_.empty() || codec_.wants_write()); }
  bool reading() const override;
  void drain() override;
  bool finished() const override;
  bool idle() const override { return open_.empty(); }
  Result<void> tick(Millis now) override;

  void wake(Exchange& exchange) override;
  void consumed(Exchange& exchange, std::size_t size) override;
  void want_body(Exchange& exchange) override;
  void abandon(Exchange& exchange, Fault fault) override;

  // --- for Http2Codec ---
  Http2Stream* begin_request(std::uint32_t id);  // nullptr: refused
  void begin_trailers(Http2Stream* stream);
  void field(std::string_view name, std::string_view value);
  void head_complete(Http2Stream& stream);
  void body(Http2Stream& stream, std::string_view bytes);
  void end(Http2Stream& stream);
  void closed(Http2Stream& stream);
  void malformed();
  void greeted() { greeted_ = true; }
  void acknowledged() { acknowledged_ = true; }
  void pong();
  DataPiece next_body(Http2Stream& stream, std::size_t room);
  enum class Pull : std::uint8_t { on, enough };
  Pull move_body(Http2Stream& stream, std::string_view frame_head, std::size_t size);
  void sent_headers() { guard_.sent_headers(); }
  void sent_answer(Http2Stream& stream);
  void sent_reset(Http2Error code);
  void sent_goaway(Http2Error code);

 private:
  // Of a body that nobody reads: cheaper to take than to reset the stream.
  static constexpr std::uint64_t k_surplus = 64 * 1024;

  static Http2Stream& stream_of(Exchange& exchange) { return static_cast<Http2Stream&>(*exchange.lane()); }
  Millis now() const { return host_.clock.now(); }
  void touch();
  void push(Http2Stream& stream);

  Result<void> judge(std::string_view before);
  std::optional<Verdict> verdict(const Frame& frame);
  Known known(const Frame& frame) const;
  bool overflows(const Frame& settings) const;
  Result<void> give(std::string_view octets);
  std::unexpected<Error> terminate(Http2Error code, Fault fault, std::string_view why);

  void start(Http2Stream& stream, RequestHead head);
  void refuse(Http2Stream& stream, int status);
  void drop(Http2Stream& stream, Http2Error code);
  static bool has_unsent(const Http2Stream& stream);
  void serve(Http2Stream& stream);
  void inform(Http2Stream& stream);
  void answer(Http2Stream& stream);
  void add_app_fields(const Headers& headers);

  Result<void> check_handshake(Millis now);
  void check_drain(Millis now);
  void check_idle(Millis now);
  void check_stream(Http2Stream& stream, Millis now);
  static bool owes_octets(const Http2Stream& stream);
  bool stalled_writing(Http2Stream& stream, Millis now) const;
  bool stalled_body(Http2Stream& stream, Millis now) const;
  void last_goaway();
  bool stranded(const Http2Stream& stream) const;
  void drop_stranded();

  Host& host_;
  DirtyHook& dirty_;
  const Peer& peer_;
  Http2Guard guard_;
  FrameScanner scanner_;
  RequestBuilder builder_;
  List<Http2Stream, Open> open_;
  List<Http2Stream, Pending> pending_;
  std::size_t open_count_ = 0;
  Http2Codec codec_;
  Http2Stream* block_ = nullptr;  // the stream of the header block under way; none when it is refused
  std::vector<OutField> fields_;
  Outbox* out_ = nullptr;       // only within fill()
  std::uint64_t out_full_ = 0;  // its size when the budget is used up
  std::optional<Error> error_;
  enum class Drain : std::uint8_t { no, announced, last } drain_ = Drain::no;
  Millis opened_at_;
  Millis ticked_at_;
  Millis active_at_;  // the latest use: a request, octets of a body either way
  Millis drain_at_ = 0;
  bool greeted_ = false;       // the peer's first SETTINGS came
  bool acknowledged_ = false;  // and its ack of ours
  bool stalled_ = false;       // a stream was ended because the peer stood still
  bool eof_ = false;
  bool broken_ = false;  // nghttp2 gave up
};

}  // namespace tricorn
