#include "http/http1.h"

#include <llhttp.h>

#include "http/session.h"

namespace tricorn {
namespace {

using Event = RequestParser::Event;

bool over(std::uint64_t size, std::uint64_t limit) { return limit > 0 && size > limit; }

// RFC 9110 15.6.6, 2.5: a higher minor version could be served as 1.1, but llhttp does not parse it.
int refusal_of(const llhttp_t& parser) {
  if (parser.http_major > 1 || (parser.http_major == 1 && parser.http_minor > 1)) return 505;
  return parser.http_major == 1 ? 0 : 400;
}

}  // namespace

// The callbacks' side of the parser. A callback that returns HPE_PAUSED ends the step with an event.
struct RequestParser::State {
  enum class Where : std::uint8_t { between, head, body };

  explicit State(const Limits& its_limits);
  static llhttp_settings_t settings();

  void restart();
  Step step(std::string_view input);
  Step bad(int with, std::size_t used);
  int version_refusal(llhttp_errno_t code) const;
  bool head_is_endless() const;

  int refuse(int with) {
    status = with;
    return HPE_USER;
  }
  int pause(Event at) {
    event = at;
    return HPE_PAUSED;
  }
  int on_head() { return pause(Event::head); }
  int on_end() { return pause(Event::end); }
  int on_protocol(std::string_view piece);
  int on_target(std::string_view piece);
  int on_field(std::string_view piece);
  int on_value(std::string_view piece);
  int on_value_complete();
  int on_chunk_extension(std::string_view piece);
  int on_body(std::string_view piece);
  int on_trailer(std::string_view piece);

  template <auto Method>
  static int on_piece(llhttp_t* parser, const char* at, std::size_t size) {
    return (static_cast<State*>(parser->data)->*Method)({at, size});
  }
  template <auto Method>
  static int on_point(llhttp_t* parser) {
    return (static_cast<State*>(parser->data)->*Method)();
  }

  const Limits& limits;
  llhttp_t llhttp;
  RequestHead head;
  std::string_view body;
  std::uint64_t head_size = 0;     // octets of a head that has not ended, blank lines and white space included
  std::uint64_t chunk_ext = 0;     // of this message
  std::uint64_t trailer_size = 0;  // of this message
  int status = 400;
  Event event = Event::none;
  Where where = Where::between;
};

llhttp_settings_t RequestParser::State::settings() {
  llhttp_settings_t to;
  llhttp_settings_init(&to);
  to.on_protocol = on_piece<&State::on_protocol>;
  to.on_url = on_piece<&State::on_target>;
  to.on_header_field = on_piece<&State::on_field>;
  to.on_header_value = on_piece<&State::on_value>;
  to.on_chunk_extension_name = on_piece<&State::on_chunk_extension>;
  to.on_chunk_extension_value = on_piece<&State::on_chunk_extension>;
  to.on_body = on_piece<&State::on_body>;
  to.on_header_value_complete = on_point<&State::on_value_complete>;
  to.on_headers_complete = on_point<&State::on_head>;
  to.on_message_complete = on_point<&State::on_end>;
  return to;
}

RequestParser::State::State(const Limits& its_limits) : limits(its_limits) {
  static const llhttp_settings_t shared = settings();
  llhttp_init(&llhttp, HTTP_REQUEST, &shared);
  llhttp.data = this;
}

// Each message starts afresh: whether the connection goes on is the session's to say, not llhttp's.
void RequestParser::State::restart() {
  llhttp_reset(&llhttp);
  head = {};
  head_size = chunk_ext = trailer_size = 0;
  status = 400;
  where = Where::head;
}

RequestParser::Step RequestParser::State::step(std::string_view input) {
  llhttp_resume(&llhttp);
  const llhttp_errno_t code = llhttp_execute(&llhttp, input.data(), input.size());
  std::size_t used = input.size();
  if (code != HPE_OK) used = static_cast<std::size_t>(llhttp_get_error_pos(&llhttp) - input.data());
  if (where == Where::head) head_size += used;
  if (code != HPE_OK && code != HPE_PAUSED) return bad(version_refusal(code), used);
  if (head_is_endless()) return bad(431, used);
  if (code == HPE_OK) return {Event::none, used};
  if (event == Event::head && refusal_of(llhttp) != 0) return bad(refusal_of(llhttp), used);
  where = event == Event::end ? Where::between : Where::body;
  return {event, used, event == Event::body ? body : std::string_view{}};
}

RequestParser::Step RequestParser::State::bad(int with, std::size_t used) {
  if (with != 0) status = with;
  return {Event::bad, used};
}

int RequestParser::State::version_refusal(llhttp_errno_t code) const {
  const bool version = code == HPE_INVALID_VERSION || code == HPE_PAUSED_H2_UPGRADE;
  return version ? refusal_of(llhttp) : 0;
}

// Blank lines before a request and white space before a value are in no other count.
bool RequestParser::State::head_is_endless() const {
  if (limits.request_line == 0 || head_size <= limits.request_line) return false;
  return over((head_size - limits.request_line) / 2, limits.header_size);
}

// llhttp also knows RTSP and ICE.
int RequestParser::State::on_protocol(std::string_view piece) {
  return piece.find_first_not_of("HTP") == std::string_view::npos ? HPE_OK : refuse(400);
}

int RequestParser::State::on_target(std::string_view piece) {
  if (over(head.target.size() + piece.size(), limits.request_line)) return refuse(414);
  head.target.append(piece);
  return HPE_OK;
}

int RequestParser::State::on_field(std::string_view piece) {
  if (where == Where::body) return on_trailer(piece);
  if (over(head.headers.octets() + piece.size(), limits.header_size)) return refuse(431);
  head.headers.append_name(piece);
  return HPE_OK;
}

int RequestParser::State::on_value(std::string_view piece) {
  if (where == Where::body) return on_trailer(piece);
  if (over(head.headers.octets() + piece.size(), limits.header_size)) return refuse(431);
  head.headers.append_value(piece);
  return HPE_OK;
}

int RequestParser::State::on_value_complete() {
  if (where == Where::body) return HPE_OK;
  head.headers.commit();
  return over(head.headers.size(), limits.header_count) ? refuse(431) : HPE_OK;
}

// RFC 9112 7.1.1: ignored, but not without end.
int RequestParser::State::on_chunk_extension(std::string_view piece) {
  chunk_ext += piece.size();
  return over(chunk_ext, limits.chunk_ext) ? refuse(413) : HPE_OK;
}

// RFC 9110 6.5.1: never merged into the head; ASGI has no place for them.
int RequestParser::State::on_trailer(std::string_view piece) {
  trailer_size += piece.size();
  return over(trailer_size, limits.trailer_size) ? refuse(431) : HPE_OK;
}

int RequestParser::State::on_body(std::string_view piece) {
  if (piece.empty()) return HPE_OK;  // resumed with nothing new
  body = piece;
  return pause(Event::body);
}

RequestParser::RequestParser(const Limits& limits) : state_(std::make_unique<State>(limits)) {}
RequestParser::~RequestParser() = default;

RequestParser::Step RequestParser::next(std::string_view input) {
  if (state_->where == State::Where::between) {
    if (input.empty()) return {Event::none, 0};
    state_->restart();
  }
  return state_->step(input);
}

RequestHead RequestParser::take_head() {
  RequestHead head = std::move(state_->head);
  head.method = llhttp_method_name(static_cast<llhttp_method_t>(llhttp_get_method(&state_->llhttp)));
  head.version = llhttp_get_http_minor(&state_->llhttp) == 0 ? Version::http10 : Version::http11;
  return head;
}

int RequestParser::status() const { return state_->status; }
bool RequestParser::is_head() const { return llhttp_get_method(&state_->llhttp) == HTTP_HEAD; }

std::string http1_library() {
  return "llhttp " + std::to_string(LLHTTP_VERSION_MAJOR) + "." + std::to_string(LLHTTP_VERSION_MINOR) + "." +
         std::to_string(LLHTTP_VERSION_PATCH);
}

}  // namespace tricorn
