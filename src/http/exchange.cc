#include "http/exchange.h"

#include "base/text.h"
#include "http/host.h"

namespace tricorn {

Exchange::Exchange(Host& host, Wire& wire, const Peer& peer, RequestHead head)
    : host_(host), wire_(&wire), peer_(&peer), app_(&host.router.find(head.path())), request_(std::move(head)) {}

Exchange::~Exchange() = default;

void Exchange::enter(Call& call) {
  call_ = &call;
  ++host_.requests;
}

void Exchange::leave() {
  if (left_) return;
  left_ = true;
  if (call_) --host_.requests;
  call_ = nullptr;
  unlink();
  take(in_.size());
}

void Exchange::take(std::size_t size) {
  if (size == 0) return;
  in_.drain(size);
  if (wire_) wire_->consumed(*this, size);
}

void Exchange::want_body() {
  if (wire_ && !body_ended_) wire_->want_body(*this);
}

void Exchange::signal(Event event) {
  if (left_) return;
  events_ |= static_cast<Events>(event);
  host_.ready.push(*this);
}

void Exchange::receive(std::string_view bytes) {
  if (left_) {
    if (wire_) wire_->consumed(*this, bytes.size());
    return;
  }
  in_.append(bytes);
  signal(Event::body);
}

void Exchange::receive_end() {
  body_ended_ = true;
  signal(Event::body);
}

void Exchange::end_input() {
  if (input_ended_) return;
  input_ended_ = true;
  signal(Event::input_ended);
}

void Exchange::detach_wire() {
  if (!wire_) return;
  wire_ = nullptr;
  peer_ = nullptr;
  out_.clear();
  signal(Event::gone);
}

Result<void> Exchange::step(Step step) {
  if (!wire_) return fail(Fault::gone, "the peer is gone");
  const auto to = next(send_, step);
  if (!to) return fail(Fault::state, "not now");
  send_ = *to;
  return {};
}

Result<void> Exchange::inform(int status, Headers headers) {
  if (auto ok = step(Step::inform); !ok) return ok;
  if (request_.version == Version::http10) return {};  // RFC 9110 15.2: never to HTTP/1.0
  informational_.push_back({status, std::move(headers)});
  wire_->wake(*this);
  return {};
}

Result<void> Exchange::respond(ResponseHead head) {
  std::optional<std::uint64_t> declared;
  if (auto value = head.headers.find("content-length")) {
    auto size = parse_number(trim(*value));
    if (!size) return fail(Fault::value, "Invalid HTTP header value.");
    declared = *size;
  }
  if (auto ok = step(Step::respond); !ok) return ok;
  response_ = std::move(head);
  bodiless_ = request_.method == "HEAD" || response_.status == 204 || response_.status == 304;
  declared_ = declared;
  wire_->wake(*this);
  return {};
}

Result<bool> Exchange::count(std::uint64_t size) {
  if (auto ok = step(Step::write); !ok) return std::unexpected{ok.error()};
  if (bodiless_) return false;
  if (declared_ && written_ + size > *declared_)
    return fail(Fault::value, "Response content longer than Content-Length");
  written_ += size;
  return size > 0;
}

Result<void> Exchange::write(std::string_view bytes, Ref<Block> owner) {
  auto send = count(bytes.size());
  if (!send) return std::unexpected{send.error()};
  if (*send) {
    if (owner && bytes.size() >= Outbox::k_borrow) out_.borrow(bytes, std::move(owner));
    else out_.append(bytes);
    wire_->wake(*this);
  }
  return {};
}

Result<void> Exchange::write_file(Ref<File> file, std::uint64_t offset, std::uint64_t size) {
  auto send = count(size);
  if (!send) return std::unexpected{send.error()};
  if (*send) {
    out_.append_file(std::move(file), offset, size);
    wire_->wake(*this);
  }
  return {};
}

Result<void> Exchange::finish(Headers trailers) {
  if (wire_ && next(send_, Step::finish) && !bodiless_ && declared_ && written_ < *declared_)
    return fail(Fault::value, "Response content shorter than Content-Length");
  if (auto ok = step(Step::finish); !ok) return ok;
  trailers_ = std::move(trailers);
  wire_->wake(*this);
  return {};
}

void Exchange::abandon(Fault fault) {
  if (wire_) wire_->abandon(*this, fault);
}

bool Exchange::writable() {
  choked_ = wire_ && host_.limits.write_buffer > 0 && out_.size() >= host_.limits.write_buffer;
  return !choked_;
}

void Exchange::pulled() {
  if (!choked_ || out_.size() > host_.limits.write_buffer / 2) return;
  choked_ = false;
  signal(Event::writable);
}

ResponseHead plain_head(int status, std::string_view text) {
  ResponseHead head{.status = status, .headers = {}};
  head.headers.add("content-type", "text/plain; charset=utf-8");
  head.headers.add("content-length", std::to_string(text.size()));
  return head;
}

}  // namespace tricorn
