// nghttp2 as C++: octets in and out, frames submitted, callbacks turned into calls on the session.
// The one place that knows nghttp2. It decides nothing: what a request, a limit or a time-out is, Http2Session knows.
//
// Works with every nghttp2 from 1.52 on. Its own limits (resets, CONTINUATION, glitches, queued acks) are set out of
// the way because they differ from release to release: Http2Guard counts for all of them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "http/host.h"
#include "http/http2_frames.h"

struct nghttp2_session;

namespace tricorn {

class Http2Session;
class Http2Stream;

// A field to send. Its octets must stay until the frame is out; `fleeting` ones are copied.
struct OutField {
  enum class Life : std::uint8_t { lasting, fleeting };
  std::string_view name;
  std::string_view value;
  Life life = Life::lasting;
};

// What the next DATA frame of a stream carries.
struct DataPiece {
  enum class Then : std::uint8_t { more, wait, end, trailers };
  std::size_t size = 0;
  Then then = Then::wait;
};

class Http2Codec {
 public:
  Http2Codec(Http2Session& session, const Limits& limits);
  ~Http2Codec();
  Http2Codec(const Http2Codec&) = delete;
  Http2Codec& operator=(const Http2Codec&) = delete;

  // Calls the session back for what `octets` complete. An error cannot be recovered from: terminate().
  Result<void> receive(std::string_view octets);
  // The next octets to send, empty when there are none now. DATA goes by Http2Session::move_body instead.
  Result<std::string_view> next();

  bool wants_write() const;
  // Nothing more will be read or written.
  bool over() const;
  // Frames that wait to be sent, DATA not counted.
  std::size_t queued() const;

  // A response is `whole` when no DATA follows its HEADERS.
  enum class Follows : std::uint8_t { body, nothing };
  void inform(std::uint32_t stream, std::span<const OutField> fields);
  void respond(Http2Stream& stream, std::span<const OutField> fields, Follows follows);
  void trailers(std::uint32_t stream, std::span<const OutField> fields);
  void resume(std::uint32_t stream);
  void reset(std::uint32_t stream, Http2Error code);
  void ping();
  void shutdown_notice();  // GOAWAY that promises another
  void goaway();           // GOAWAY: streams above the latest are not served
  void terminate(Http2Error code);

  void consume_connection(std::size_t size);
  void consume_stream(std::uint32_t stream, std::size_t size);
  std::int64_t send_window(std::uint32_t stream) const;
  std::int64_t connection_send_window() const;
  std::int64_t initial_send_window() const;
  // The stream that the session returned when it began; nullptr when it is not open.
  Http2Stream* find(std::uint32_t stream) const;

 private:
  void greet(const Limits& limits);

  struct Delete {
    void operator()(nghttp2_session* session) const;
  };
  std::unique_ptr<nghttp2_session, Delete> session_;
  struct Packed;  // fields as nghttp2 wants them
  std::unique_ptr<Packed> packed_;
  std::string greeting_;  // SETTINGS and WINDOW_UPDATE, until they are taken
  std::string taken_;
};

}  // namespace tricorn
