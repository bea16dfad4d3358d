#include "http/http2_frames.h"

#include <algorithm>
#include <cstring>

namespace tricorn {
namespace {

std::uint32_t read(std::string_view octets, std::size_t at, std::size_t size) {
  std::uint32_t value = 0;
  for (char c : octets.substr(at, size)) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

constexpr std::uint32_t k_id = 0x7fffffff;  // the first bit is reserved
constexpr std::uint32_t k_initial_window_size = 4;

}  // namespace

std::uint32_t Frame::dependency() const {
  const std::size_t at = type == FrameType::headers && has(FrameFlag::padded) ? 1 : 0;
  if (type != FrameType::priority && !(type == FrameType::headers && has(FrameFlag::priority))) return 0;
  return payload.size() < at + 4 ? 0 : read(payload, at, 4) & k_id;
}

std::int64_t Frame::initial_window() const {
  std::int64_t window = -1;
  for (std::size_t at = 0; at + 6 <= payload.size(); at += 6)
    if (read(payload, at, 2) == k_initial_window_size) window = read(payload, at + 2, 4);
  return window;
}

bool FrameScanner::next(std::string_view in, std::size_t& at) {
  if (skip_ > 0) {
    const std::size_t n = std::min(skip_, in.size() - at);
    skip_ -= n;
    at += n;
    return false;
  }
  if (filled_ == 0) start_ = at;
  const std::size_t n = std::min(need_ - filled_, in.size() - at);
  std::memcpy(octets_.data() + filled_, in.data() + at, n);
  filled_ += n;
  at += n;
  if (filled_ < need_) return false;
  if (need_ == k_head) {
    parse();
    need_ += wanted();
    if (filled_ < need_) return false;
  }
  frame_.payload = {octets_.data() + k_head, need_ - k_head};
  skip_ = frame_.length - frame_.payload.size();
  filled_ = 0;
  need_ = k_head;
  return true;
}

bool FrameScanner::in_header_block() const {
  if (frame_.type != FrameType::headers && frame_.type != FrameType::continuation) return false;
  return !frame_.has(FrameFlag::end_headers) || skip_ > 0;
}

void FrameScanner::parse() {
  const std::string_view head{octets_.data(), k_head};
  frame_ = {.length = read(head, 0, 3),
            .type = static_cast<FrameType>(read(head, 3, 1)),
            .flags = static_cast<std::uint8_t>(read(head, 4, 1)),
            .stream = read(head, 5, 4) & k_id,
            .payload = {}};
}

// Octets of the payload to keep; none of a frame whose length is wrong anyway.
std::size_t FrameScanner::wanted() const {
  std::size_t size = 0;
  if (frame_.type == FrameType::settings) size = frame_.length > k_settings ? 0 : k_settings;
  if (frame_.type == FrameType::priority) size = 4;
  if (frame_.type == FrameType::headers && frame_.has(FrameFlag::priority)) size = 5;
  return std::min<std::size_t>(size, frame_.length);
}

}  // namespace tricorn
