#include "http/http2.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <limits>
#include <new>
#include <vector>

#include "http/http2_session.h"

namespace tricorn {
namespace {

using Session = ::nghttp2_session;
constexpr std::size_t k_frame_head = 9;
constexpr std::size_t k_no_limit = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t k_max_head = 1 << 20;  // of a response, in octets

std::string_view view(const std::uint8_t* octets, std::size_t size) {
  return {reinterpret_cast<const char*>(octets), size};
}
const std::uint8_t* octets(std::string_view text) { return reinterpret_cast<const std::uint8_t*>(text.data()); }
Http2Session& self(void* user) { return *static_cast<Http2Session*>(user); }
std::int32_t signed_id(std::uint32_t stream) { return static_cast<std::int32_t>(stream); }
std::uint32_t unsigned_id(std::int32_t stream) { return static_cast<std::uint32_t>(stream); }

Http2Stream* stream_at(Session* session, std::int32_t id) {
  return static_cast<Http2Stream*>(nghttp2_session_get_stream_user_data(session, id));
}

// --- callbacks ---

int on_begin_headers(Session* session, const nghttp2_frame* frame, void* user) {
  const std::int32_t id = frame->hd.stream_id;
  if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
    self(user).begin_trailers(stream_at(session, id));
    return 0;
  }
  Http2Stream* stream = self(user).begin_request(unsigned_id(id));
  if (!stream) return 0;
  nghttp2_session_set_stream_user_data(session, id, stream);
  // Streams take turns, whatever their client asks for (RFC 9218 leaves it to us).
  constexpr nghttp2_extpri fair{.urgency = NGHTTP2_EXTPRI_DEFAULT_URGENCY, .inc = 1};
  nghttp2_session_change_extpri_stream_priority(session, id, &fair, 1);
  return 0;
}

int on_header(Session*, const nghttp2_frame*, const std::uint8_t* name, std::size_t name_size,
              const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* user) {
  self(user).field(view(name, name_size), view(value, value_size));
  return 0;
}

// Without this, newer releases drop an invalid field in silence and serve the request.
int on_invalid_header(Session*, const nghttp2_frame*, const std::uint8_t*, std::size_t, const std::uint8_t*,
                      std::size_t, std::uint8_t, void*) {
  return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

int on_invalid_frame(Session*, const nghttp2_frame*, int error, void* user) {
  if (error == NGHTTP2_ERR_HTTP_HEADER || error == NGHTTP2_ERR_HTTP_MESSAGING) self(user).malformed();
  return 0;
}

void on_settings(const nghttp2_frame* frame, Http2Session& session) {
  if ((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0) session.acknowledged();
  else session.greeted();
}

int on_frame_recv(Session* session, const nghttp2_frame* frame, void* user) {
  const bool last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA:
      if (Http2Stream* stream = stream_at(session, frame->hd.stream_id)) {
        if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
          self(user).head_complete(*stream);
        if (last) self(user).end(*stream);
      }
      break;
    case NGHTTP2_RST_STREAM:
      if (Http2Stream* stream = stream_at(session, frame->hd.stream_id)) stream->ended = true;
      break;
    case NGHTTP2_SETTINGS: on_settings(frame, self(user)); break;
    case NGHTTP2_PING:
      if ((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0) self(user).pong();
      break;
    default: break;
  }
  return 0;
}

int on_data_chunk(Session* session, std::uint8_t, std::int32_t id, const std::uint8_t* data, std::size_t size,
                  void* user) {
  nghttp2_session_consume_connection(session, size);
  if (Http2Stream* stream = stream_at(session, id)) self(user).body(*stream, view(data, size));
  return 0;
}

int on_stream_close(Session* session, std::int32_t id, std::uint32_t, void* user) {
  if (Http2Stream* stream = stream_at(session, id)) self(user).closed(*stream);
  return 0;
}

int on_frame_send(Session* session, const nghttp2_frame* frame, void* user) {
  const bool last = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
  switch (frame->hd.type) {
    case NGHTTP2_HEADERS: self(user).sent_headers(); [[fallthrough]];
    case NGHTTP2_DATA:
      if (!last) break;
      if (Http2Stream* stream = stream_at(session, frame->hd.stream_id)) self(user).sent_answer(*stream);
      break;
    case NGHTTP2_RST_STREAM: self(user).sent_reset(static_cast<Http2Error>(frame->rst_stream.error_code)); break;
    case NGHTTP2_GOAWAY: self(user).sent_goaway(static_cast<Http2Error>(frame->goaway.error_code)); break;
    default: break;
  }
  return 0;
}

// A head that cannot be sent (over k_max_head, say) must not leave its stream hanging.
int on_frame_not_send(Session* session, const nghttp2_frame* frame, int, void*) {
  if (frame->hd.type == NGHTTP2_HEADERS && stream_at(session, frame->hd.stream_id))
    nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_INTERNAL_ERROR);
  return 0;
}

ssize_t on_read(Session*, std::int32_t, std::uint8_t*, std::size_t room, std::uint32_t* flags,
                nghttp2_data_source* source, void* user) {
  const DataPiece piece = self(user).next_body(*static_cast<Http2Stream*>(source->ptr), room);
  if (piece.then == DataPiece::Then::wait) return NGHTTP2_ERR_DEFERRED;
  if (piece.size > 0) *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (piece.then == DataPiece::Then::end) *flags |= NGHTTP2_DATA_FLAG_EOF;
  if (piece.then == DataPiece::Then::trailers) *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
  return static_cast<ssize_t>(piece.size);
}

int on_send_data(Session*, nghttp2_frame*, const std::uint8_t* head, std::size_t size, nghttp2_data_source* source,
                 void* user) {
  const auto pull = self(user).move_body(*static_cast<Http2Stream*>(source->ptr), view(head, k_frame_head), size);
  return pull == Http2Session::Pull::enough ? NGHTTP2_ERR_PAUSE : 0;
}

// --- set-up ---

struct Callbacks {
  nghttp2_session_callbacks* table = nullptr;
  Callbacks() {
    nghttp2_session_callbacks_new(&table);
    nghttp2_session_callbacks_set_on_begin_headers_callback(table, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(table, on_header);
    nghttp2_session_callbacks_set_on_invalid_header_callback(table, on_invalid_header);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(table, on_invalid_frame);
    nghttp2_session_callbacks_set_on_frame_recv_callback(table, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(table, on_data_chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(table, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(table, on_frame_send);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(table, on_frame_not_send);
    nghttp2_session_callbacks_set_send_data_callback(table, on_send_data);
  }
  ~Callbacks() { nghttp2_session_callbacks_del(table); }
  Callbacks(const Callbacks&) = delete;
  Callbacks& operator=(const Callbacks&) = delete;
};

// Limits of nghttp2 that not every release has: named only where they are declared.
template <class Option>
void lift_newer_limits(Option* option) {
  if constexpr (requires { nghttp2_option_set_stream_reset_rate_limit(option, 1, 1); })
    nghttp2_option_set_stream_reset_rate_limit(option, k_no_limit, k_no_limit);
  if constexpr (requires { nghttp2_option_set_max_continuations(option, 1); })
    nghttp2_option_set_max_continuations(option, k_no_limit);
  if constexpr (requires { nghttp2_option_set_glitch_rate_limit(option, 1, 1); })
    nghttp2_option_set_glitch_rate_limit(option, k_no_limit, k_no_limit);
  if constexpr (requires { nghttp2_option_set_max_outbound_queue_size(option, 1); })
    nghttp2_option_set_max_outbound_queue_size(option, k_no_limit);
}

struct Options {
  nghttp2_option* set = nullptr;
  Options() {
    nghttp2_option_new(&set);
    nghttp2_option_set_no_auto_window_update(set, 1);
    nghttp2_option_set_max_outbound_ack(set, k_no_limit);
    nghttp2_option_set_max_send_header_block_length(set, k_max_head);
    lift_newer_limits(set);
  }
  ~Options() { nghttp2_option_del(set); }
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;
};

constexpr std::uint32_t k_most = NGHTTP2_MAX_WINDOW_SIZE;  // 2^31-1

// What is out of a setting's range (RFC 9113 6.5.2) is brought to its edge: a refused SETTINGS would leave us mute.
std::vector<nghttp2_settings_entry> settings(const Limits& limits) {
  const std::uint32_t frame = std::clamp(limits.h2_max_frame_size, 16'384u, 16'777'215u);
  std::vector<nghttp2_settings_entry> entries{
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, k_most},  // first: see greet()
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, std::min(limits.h2_initial_window, k_most)},
      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
  };
  if (frame != 16'384) entries.push_back({NGHTTP2_SETTINGS_MAX_FRAME_SIZE, frame});
  if (limits.h2_header_table_size != 4'096)
    entries.push_back({NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, limits.h2_header_table_size});
  if (limits.header_size > 0 && limits.header_size <= k_no_limit)
    entries.push_back({NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(limits.header_size)});
  return entries;
}

Result<void> checked(ssize_t result) {
  if (result >= 0) return {};
  const Fault fault = result == NGHTTP2_ERR_FLOODED ? Fault::flood : Fault::protocol;
  return fail(fault, nghttp2_strerror(static_cast<int>(result)));
}

}  // namespace

struct Http2Codec::Packed {
  std::vector<nghttp2_nv> fields;

  std::span<const nghttp2_nv> pack(std::span<const OutField> from) {
    constexpr int lasting = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE;
    fields.clear();
    for (const OutField& field : from) {
      const int flags = field.life == OutField::Life::lasting ? lasting : 0;
      fields.push_back({const_cast<std::uint8_t*>(octets(field.name)), const_cast<std::uint8_t*>(octets(field.value)),
                        field.name.size(), field.value.size(), static_cast<std::uint8_t>(flags)});
    }
    return fields;
  }
};

void Http2Codec::Delete::operator()(nghttp2_session* session) const { nghttp2_session_del(session); }

Http2Codec::Http2Codec(Http2Session& session, const Limits& limits) : packed_(std::make_unique<Packed>()) {
  const Callbacks callbacks;
  const Options options;
  nghttp2_session* made = nullptr;
  if (nghttp2_session_server_new2(&made, callbacks.table, &session, options.set) != 0) throw std::bad_alloc{};
  session_.reset(made);
  greet(limits);
}

Http2Codec::~Http2Codec() = default;

// nghttp2 answers a stream above its MAX_CONCURRENT_STREAMS with GOAWAY once the peer has acknowledged the setting;
// REFUSED_STREAM, which loses the peer nothing, is Http2Session's to send. So nghttp2 gets no limit, the peer the real
// one.
void Http2Codec::greet(const Limits& limits) {
  const auto entries = settings(limits);
  nghttp2_submit_settings(session_.get(), NGHTTP2_FLAG_NONE, entries.data(), entries.size());
  nghttp2_session_set_local_window_size(session_.get(), NGHTTP2_FLAG_NONE, 0,
                                        static_cast<std::int32_t>(std::min(limits.h2_connection_window, k_most)));
  const std::uint8_t* data = nullptr;
  for (ssize_t n = 0; (n = nghttp2_session_mem_send(session_.get(), &data)) > 0;)
    greeting_ += view(data, static_cast<std::size_t>(n));
  if (limits.h2_max_concurrent_streams == 0) return;
  const std::uint32_t most = limits.h2_max_concurrent_streams;
  constexpr std::size_t at = k_frame_head + 2;  // the value of the first entry
  for (std::size_t i = 0; i < 4; ++i) greeting_[at + i] = static_cast<char>(most >> (24 - 8 * i) & 0xff);
}

Result<void> Http2Codec::receive(std::string_view text) {
  return checked(nghttp2_session_mem_recv(session_.get(), octets(text), text.size()));
}

Result<std::string_view> Http2Codec::next() {
  if (!greeting_.empty()) {
    taken_ = std::exchange(greeting_, {});
    return std::string_view{taken_};
  }
  const std::uint8_t* data = nullptr;
  const ssize_t size = nghttp2_session_mem_send(session_.get(), &data);
  if (auto ok = checked(size); !ok) return std::unexpected{ok.error()};
  return view(data, static_cast<std::size_t>(size));
}

bool Http2Codec::wants_write() const { return !greeting_.empty() || nghttp2_session_want_write(session_.get()) != 0; }

bool Http2Codec::over() const { return !wants_write() && nghttp2_session_want_read(session_.get()) == 0; }

std::size_t Http2Codec::queued() const { return nghttp2_session_get_outbound_queue_size(session_.get()); }

void Http2Codec::inform(std::uint32_t stream, std::span<const OutField> fields) {
  const auto nv = packed_->pack(fields);
  nghttp2_submit_headers(session_.get(), NGHTTP2_FLAG_NONE, signed_id(stream), nullptr, nv.data(), nv.size(), nullptr);
}

void Http2Codec::respond(Http2Stream& stream, std::span<const OutField> fields, Follows follows) {
  const auto nv = packed_->pack(fields);
  nghttp2_data_provider body{.source = {.ptr = &stream}, .read_callback = on_read};
  nghttp2_submit_response(session_.get(), signed_id(stream.id), nv.data(), nv.size(),
                          follows == Follows::body ? &body : nullptr);
}

void Http2Codec::trailers(std::uint32_t stream, std::span<const OutField> fields) {
  const auto nv = packed_->pack(fields);
  nghttp2_submit_trailer(session_.get(), signed_id(stream), nv.data(), nv.size());
}

void Http2Codec::resume(std::uint32_t stream) { nghttp2_session_resume_data(session_.get(), signed_id(stream)); }

void Http2Codec::reset(std::uint32_t stream, Http2Error code) {
  nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, signed_id(stream), static_cast<std::uint32_t>(code));
}

void Http2Codec::ping() { nghttp2_submit_ping(session_.get(), NGHTTP2_FLAG_NONE, nullptr); }

void Http2Codec::shutdown_notice() { nghttp2_submit_shutdown_notice(session_.get()); }

void Http2Codec::goaway() {
  nghttp2_submit_goaway(session_.get(), NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_.get()),
                        NGHTTP2_NO_ERROR, nullptr, 0);
}

void Http2Codec::terminate(Http2Error code) {
  nghttp2_session_terminate_session(session_.get(), static_cast<std::uint32_t>(code));
}

void Http2Codec::consume_connection(std::size_t size) { nghttp2_session_consume_connection(session_.get(), size); }

void Http2Codec::consume_stream(std::uint32_t stream, std::size_t size) {
  nghttp2_session_consume_stream(session_.get(), signed_id(stream), size);
}

std::int64_t Http2Codec::send_window(std::uint32_t stream) const {
  return nghttp2_session_get_stream_remote_window_size(session_.get(), signed_id(stream));
}

std::int64_t Http2Codec::connection_send_window() const {
  return nghttp2_session_get_remote_window_size(session_.get());
}

std::int64_t Http2Codec::initial_send_window() const {
  return nghttp2_session_get_remote_settings(session_.get(), NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE);
}

Http2Stream* Http2Codec::find(std::uint32_t stream) const { return stream_at(session_.get(), signed_id(stream)); }

std::string http2_library() { return std::string{"nghttp2 "} + nghttp2_version(0)->version_str; }

}  // namespace tricorn
