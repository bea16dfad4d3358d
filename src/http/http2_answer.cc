// The answering half of Http2Session: what exchanges hold becomes HEADERS and DATA.
#include <algorithm>
#include <array>

#include "http/http2_session.h"

namespace tricorn {
namespace {

// Three digits for every status there can be: ":status" lasts as long as the program.
constexpr auto k_digits = [] {
  std::array<char, 3000> text{};
  for (std::size_t i = 0; i < 1000; ++i) {
    text[3 * i] = static_cast<char>('0' + i / 100);
    text[3 * i + 1] = static_cast<char>('0' + i / 10 % 10);
    text[3 * i + 2] = static_cast<char>('0' + i % 10);
  }
  return text;
}();

constexpr std::string_view k_short_file = "a file ended before what was promised of it";

OutField status_field(int status) {
  const auto at = static_cast<std::size_t>(std::clamp(status, 0, 999)) * 3;
  return {":status", {k_digits.data() + at, 3}};
}

// RFC 9113 8.2.2.
bool connection_specific(std::string_view name) {
  switch (name.size()) {
    case 7: return name == "upgrade";
    case 10: return name == "connection" || name == "keep-alive";
    case 16: return name == "proxy-connection";
    case 17: return name == "transfer-encoding";
    default: return false;
  }
}

}  // namespace

void Http2Session::fill(Outbox& out, std::size_t budget) {
  if (broken_) return;
  out_ = &out;
  out_full_ = out.size() + budget;
  while (Http2Stream* stream = pending_.pop()) serve(*stream);
  while (out.size() < out_full_) {
    const auto octets = codec_.next();
    if (!octets) {
      broken_ = true;
      break;
    }
    if (octets->empty()) break;
    out.append(*octets);
  }
  out_ = nullptr;
  drop_stranded();
}

// What was written before the answer was given up is still sent: the peer sees how far it came.
bool Http2Session::has_unsent(const Http2Stream& stream) {
  if (!stream.exchange || stream.exchange->gone() || stream.exchange->send_state() == Send::idle) return false;
  return !stream.answered || !stream.exchange->out().empty();
}

void Http2Session::serve(Http2Stream& stream) {
  if (stream.doom && !has_unsent(stream)) return codec_.reset(stream.id, *stream.doom);
  if (!stream.exchange || stream.exchange->gone()) return;
  if (!stream.answered) inform(stream);
  if (!stream.answered && stream.exchange->send_state() != Send::idle) return answer(stream);
  if (std::exchange(stream.waiting, false)) codec_.resume(stream.id);
}

void Http2Session::inform(Http2Stream& stream) {
  if (std::exchange(stream.continue_due, false) && stream.exchange->send_state() == Send::idle) {
    const std::array fields{status_field(100)};
    codec_.inform(stream.id, fields);
  }
  // They are cleared here, before nghttp2 sends them: so their fields are copied.
  for (const ResponseHead& head : stream.exchange->informational()) {
    fields_.assign(1, status_field(head.status));
    for (Field field : head.headers)
      if (!connection_specific(field.name)) fields_.push_back({field.name, field.value, OutField::Life::fleeting});
    codec_.inform(stream.id, fields_);
  }
  stream.exchange->informational().clear();
}

void Http2Session::answer(Http2Stream& stream) {
  Exchange& exchange = *stream.exchange;
  const ResponseHead& head = exchange.response();
  fields_.assign(1, status_field(head.status));
  if (host_.date_header && !head.headers.has("date"))
    fields_.push_back({"date", host_.clock.date(), OutField::Life::fleeting});
  if (host_.server_header && !head.headers.has("server")) fields_.push_back({"server", "tricorn"});
  for (const auto& [name, value] : host_.headers) fields_.push_back({name, value});
  add_app_fields(head.headers);
  const bool whole = exchange.send_state() == Send::done && exchange.out().empty() &&
                     (exchange.bodiless() || exchange.trailers().empty());
  stream.answered = true;
  stream.moved_at = now();
  codec_.respond(stream, fields_, whole ? Http2Codec::Follows::nothing : Http2Codec::Follows::body);
}

void Http2Session::add_app_fields(const Headers& headers) {
  for (Field field : headers)
    if (!connection_specific(field.name)) fields_.push_back({field.name, field.value});
}

DataPiece Http2Session::next_body(Http2Stream& stream, std::size_t room) {
  Exchange& exchange = *stream.exchange;
  const std::uint64_t left = exchange.gone() ? 0 : exchange.out().size();
  // The frame's head promises its length: what comes from a file is read before, and a file that falls short costs
  // its own stream only.
  const auto size = static_cast<std::size_t>(exchange.out().load(std::min<std::uint64_t>(left, room)));
  if (size == 0 && left > 0) {
    host_.notice(Notice::Level::warning, k_short_file);
    drop(stream, Http2Error::internal_error);
    return {};
  }
  const bool complete = exchange.send_state() == Send::done && size == left;
  if (!complete) {
    stream.waiting = size == 0;
    if (stream.doom && size == 0) push(stream);  // now it can be reset
    return {size, size == 0 ? DataPiece::Then::wait : DataPiece::Then::more};
  }
  if (exchange.bodiless() || exchange.trailers().empty()) return {size, DataPiece::Then::end};
  fields_.clear();
  add_app_fields(exchange.trailers());
  codec_.trailers(stream.id, fields_);
  return {size, DataPiece::Then::trailers};
}

Http2Session::Pull Http2Session::move_body(Http2Stream& stream, std::string_view frame_head, std::size_t size) {
  out_->append(frame_head);
  stream.exchange->out().move_to(*out_, size);
  stream.moved_at = active_at_ = now();
  stream.exchange->pulled();
  guard_.sent_data();
  return out_->size() >= out_full_ ? Pull::enough : Pull::on;
}

// RFC 9113 8.1: the answer is complete; a request body that nobody wants is stopped by RST_STREAM, if it is worth it.
void Http2Session::sent_answer(Http2Stream& stream) {
  stream.sent = true;
  stream.sent_at = active_at_ = now();
  if (stream.ended || !stream.exchange || stream.exchange->call() || !stream.declared) return;
  if (*stream.declared > stream.received + k_surplus) codec_.reset(stream.id, Http2Error::no_error);
}

void Http2Session::sent_reset(Http2Error code) {
  if (auto bad = guard_.judge_reset(code, now())) (void)terminate(bad->code, Fault::flood, bad->why);
}

void Http2Session::sent_goaway(Http2Error code) {
  if (code == Http2Error::no_error) return;
  if (code != Http2Error::enhance_your_calm) return malformed();
  const std::string_view why = error_ ? std::string_view{error_->what} : "flood";
  host_.notice(Notice::Level::warning, "HTTP/2 connection closed: " + std::string{why} + ".");
}

}  // namespace tricorn
