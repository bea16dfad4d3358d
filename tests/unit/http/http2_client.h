// The other end of an HTTP/2 session for tests: frames written by hand, answers read back. It keeps no rules, so that
// it can break them.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/http2_frames.h"
#include "testing.h"

namespace tricorn::testing {

using Fields = std::vector<std::pair<std::string, std::string>>;

inline constexpr int k_end_stream = 1, k_ack = 1, k_end_headers = 4, k_padded = 8, k_priority = 32;
inline constexpr std::string_view k_preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

inline std::string number(std::uint64_t value, int octets) {
  std::string text;
  for (int shift = 8 * (octets - 1); shift >= 0; shift -= 8) text.push_back(static_cast<char>(value >> shift & 0xff));
  return text;
}

inline std::string frame(FrameType type, int flags, std::uint32_t stream, std::string_view payload = {}) {
  return number(payload.size(), 3) + number(static_cast<std::uint64_t>(type), 1) +
         number(static_cast<std::uint64_t>(flags), 1) + number(stream, 4) + std::string{payload};
}

// HPACK integers and literals (RFC 7541 5.1, 6.2.2).
inline std::string hpack_length(std::size_t n) {
  if (n < 127) return number(n, 1);
  std::string text = number(127, 1);
  for (n -= 127; n >= 128; n /= 128) text += number(n % 128 + 128, 1);
  return text + number(n, 1);
}
inline std::string block(const Fields& fields) {
  std::string text;
  for (const auto& [name, value] : fields)
    text += '\0' + hpack_length(name.size()) + name + hpack_length(value.size()) + value;
  return text;
}

inline Fields head(std::string method, std::string path, const Fields& extra = {}) {
  Fields fields{{":method", std::move(method)}, {":scheme", "http"}, {":authority", "a"}, {":path", std::move(path)}};
  fields.insert(fields.end(), extra.begin(), extra.end());
  return fields;
}
inline std::string headers(std::uint32_t stream, const Fields& fields, int flags = 0) {
  return frame(FrameType::headers, k_end_headers | flags, stream, block(fields));
}
inline std::string get(std::uint32_t stream, std::string path = "/", const Fields& extra = {}) {
  return headers(stream, head("GET", std::move(path), extra), k_end_stream);
}
inline std::string post(std::uint32_t stream, const Fields& extra = {}, std::string path = "/") {
  return headers(stream, head("POST", std::move(path), extra));
}
inline std::string data(std::uint32_t stream, std::string_view bytes, int flags = 0) {
  return frame(FrameType::data, flags, stream, bytes);
}
inline std::string reset(std::uint32_t stream, Http2Error code = Http2Error::cancel) {
  return frame(FrameType::rst_stream, 0, stream, number(static_cast<std::uint64_t>(code), 4));
}
inline std::string window_update(std::uint32_t stream, std::uint32_t size) {
  return frame(FrameType::window_update, 0, stream, number(size, 4));
}
inline std::string settings(const std::vector<std::pair<int, std::uint32_t>>& values = {}) {
  std::string payload;
  for (auto [id, value] : values) payload += number(static_cast<std::uint64_t>(id), 2) + number(value, 4);
  return frame(FrameType::settings, 0, 0, payload);
}
inline std::string settings_ack() { return frame(FrameType::settings, k_ack, 0); }
inline std::string ping(std::string_view octets = "12345678", int flags = 0) {
  return frame(FrameType::ping, flags, 0, octets);
}
inline std::string hello() { return std::string{k_preface} + settings() + settings_ack(); }

struct Reply {
  int status = 0;
  std::vector<int> informational;
  Fields fields, trailers;
  std::string body;
  std::size_t data_frames = 0, header_frames = 0;
  bool ended = false;
  std::optional<Http2Error> reset;
  std::string field(std::string_view name) const {
    for (const auto& [n, v] : fields)
      if (n == name) return v;
    return {};
  }
};

// What the server sent, read frame by frame.
class Answers {
 public:
  std::map<std::uint32_t, Reply> replies;
  std::vector<std::pair<std::uint32_t, Http2Error>> goaways;  // last stream, code
  std::map<int, std::uint32_t> settings;
  std::map<std::uint32_t, std::uint64_t> updates;  // window updates in all
  std::vector<std::string> pings, pongs;
  int settings_acks = 0;

  Answers() { nghttp2_hd_inflate_new(&inflater_); }
  ~Answers() { nghttp2_hd_inflate_del(inflater_); }
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;

  void read(std::string_view out) {
    bytes_ += out;
    while (bytes_.size() >= 9) {
      const std::size_t size = at(0, 3);
      if (bytes_.size() < 9 + size) return;
      const std::string payload = bytes_.substr(9, size);
      on_frame(static_cast<FrameType>(at(3, 1)), static_cast<int>(at(4, 1)), static_cast<std::uint32_t>(at(5, 4)),
               payload);
      bytes_.erase(0, 9 + size);
    }
  }
  std::optional<Http2Error> last_goaway() const {
    return goaways.empty() ? std::nullopt : std::optional{goaways.back().second};
  }

 private:
  std::size_t at(std::size_t from, std::size_t size, std::string_view text) const {
    std::size_t value = 0;
    for (char c : text.substr(from, size)) value = value << 8 | static_cast<unsigned char>(c);
    return value;
  }
  std::size_t at(std::size_t from, std::size_t size) const { return at(from, size, bytes_); }

  void on_frame(FrameType type, int flags, std::uint32_t stream, const std::string& payload) {
    switch (type) {
      case FrameType::headers: return on_headers(flags, replies[stream], payload);
      case FrameType::data:
        replies[stream].body += payload;
        ++replies[stream].data_frames;
        replies[stream].ended = replies[stream].ended || (flags & k_end_stream);
        return;
      case FrameType::rst_stream: replies[stream].reset = static_cast<Http2Error>(at(0, 4, payload)); return;
      case FrameType::goaway:
        goaways.emplace_back(at(0, 4, payload), static_cast<Http2Error>(at(4, 4, payload)));
        return;
      case FrameType::ping: (flags & k_ack ? pongs : pings).push_back(payload); return;
      case FrameType::window_update: updates[stream] += at(0, 4, payload); return;
      case FrameType::settings:
        settings_acks += flags & k_ack;
        for (std::size_t i = 0; i < payload.size(); i += 6)
          settings[static_cast<int>(at(i, 2, payload))] = static_cast<std::uint32_t>(at(i + 2, 4, payload));
        return;
      default: return;
    }
  }

  void on_headers(int flags, Reply& reply, std::string payload) {
    Fields fields;
    auto* in = reinterpret_cast<std::uint8_t*>(payload.data());
    for (std::size_t left = payload.size();;) {
      nghttp2_nv nv;
      int inflate = 0;
      const auto used = nghttp2_hd_inflate_hd2(inflater_, &nv, &inflate, in, left, 1);
      if (used < 0) return;
      in += used;
      left -= static_cast<std::size_t>(used);
      if (inflate & NGHTTP2_HD_INFLATE_EMIT)
        fields.emplace_back(std::string{reinterpret_cast<char*>(nv.name), nv.namelen},
                            std::string{reinterpret_cast<char*>(nv.value), nv.valuelen});
      if (inflate & NGHTTP2_HD_INFLATE_FINAL) break;
    }
    nghttp2_hd_inflate_end_headers(inflater_);
    ++reply.header_frames;
    reply.ended = reply.ended || (flags & k_end_stream);
    if (reply.status != 0) {
      reply.trailers = fields;
      return;
    }
    const int status = std::stoi(fields.at(0).second);
    if (status < 200) {
      reply.informational.push_back(status);
      return;
    }
    reply.status = status;
    reply.fields.assign(fields.begin() + 1, fields.end());
  }

  nghttp2_hd_inflater* inflater_ = nullptr;
  std::string bytes_;
};

// A world that speaks HTTP/2, and what came back from it.
struct Http2World : World {
  Answers answers;
  Http2World() : World(Protocol::http2) {}
  const Answers& exchange(std::string_view bytes) {
    feed(bytes);
    answers.read(take_out());
    return answers;
  }
  const Answers& settled() {
    settle();
    answers.read(take_out());
    return answers;
  }
  Result<void> tick_after(Millis later) {
    auto ok = session->tick(clock.now() + later);
    settled();
    return ok;
  }
  const Reply& reply(std::uint32_t stream) { return answers.replies[stream]; }
};

}  // namespace tricorn::testing
