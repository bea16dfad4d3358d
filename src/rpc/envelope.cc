#include "rpc/envelope.h"

#include <algorithm>

namespace tricorn::rpc {
namespace {

constexpr std::size_t k_keep = 65'536;  // a larger buffer is given back once its message was taken

std::uint32_t octet(char c) { return static_cast<unsigned char>(c); }

}  // namespace

void append_envelope(std::string& to, std::uint8_t flags, std::string_view message) {
  const EnvelopeHead head = envelope_head(flags, static_cast<std::uint32_t>(message.size()));
  to.append(head.data(), head.size()).append(message);
}

Outcome<std::optional<Envelope>> EnvelopeReader::next(std::string_view& in) {
  if (delivered_) forget();
  const std::size_t of_head = std::min(in.size(), head_.size() - head_size_);
  std::copy_n(in.begin(), of_head, head_.begin() + static_cast<std::ptrdiff_t>(head_size_));
  head_size_ += of_head;
  in.remove_prefix(of_head);
  if (!has_head()) return std::nullopt;
  if (auto ok = check_head(); !ok) return std::unexpected{std::move(ok.error())};

  if (message_.empty() && in.size() >= size()) {
    const std::string_view message = in.substr(0, size());
    in.remove_prefix(size());
    return deliver(message);
  }
  take(in);
  if (message_.size() < size()) return std::nullopt;
  delivered_ = true;
  return deliver(message_);
}

Outcome<> EnvelopeReader::end() const {
  if (has_head())
    return fail(Code::invalid_argument, "protocol error: promised " + std::to_string(size()) +
                                            " bytes in enveloped message, got " + std::to_string(message_.size()) +
                                            " bytes");
  if (head_size_ > 0) return fail(Code::invalid_argument, "protocol error: incomplete envelope: unexpected EOF");
  return {};
}

std::uint32_t EnvelopeReader::size() const {
  return octet(head_[1]) << 24 | octet(head_[2]) << 16 | octet(head_[3]) << 8 | octet(head_[4]);
}

Outcome<> EnvelopeReader::check_head() const {
  if ((octet(head_[0]) & ~std::uint32_t{k_compressed}) != 0)
    return fail(Code::invalid_argument, "protocol error: invalid envelope flags");
  if (limit_ && size() > *limit_) return fail_too_large(*limit_);
  return {};
}

void EnvelopeReader::take(std::string_view& in) {
  const std::string_view piece = in.substr(0, size() - message_.size());
  const std::size_t needed = message_.size() + piece.size();
  if (needed > message_.capacity())  // at most twice what has arrived, whatever the head promises
    message_.reserve(std::min<std::size_t>(size(), 2 * needed));
  message_ += piece;
  in.remove_prefix(piece.size());
}

Envelope EnvelopeReader::deliver(std::string_view message) {
  head_size_ = 0;
  return {.flags = static_cast<std::uint8_t>(head_[0]), .message = message};
}

void EnvelopeReader::forget() {
  delivered_ = false;
  message_.clear();
  if (message_.capacity() > k_keep) message_ = {};
}

std::unexpected<RpcError> fail_compressed_without_encoding() {
  return fail(Code::internal, "protocol error: sent compressed message without compression support");
}

}  // namespace tricorn::rpc
