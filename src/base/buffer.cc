#include "base/buffer.h"

#include <algorithm>
#include <cstring>

namespace tricorn {
namespace {
constexpr std::size_t k_keep = 16 * 1024;  // an empty buffer keeps at most this much
}

void Buffer::append(std::string_view bytes) {
  if (bytes.empty()) return;
  std::memcpy(reserve(bytes.size()), bytes.data(), bytes.size());
  commit(bytes.size());
}

char* Buffer::reserve(std::size_t size) {
  if (bytes_.size() - end_ >= size) return bytes_.data() + end_;
  if (start_ > 0 && start_ >= bytes_.size() / 2) {  // move down only when it halves the work
    std::memmove(bytes_.data(), bytes_.data() + start_, end_ - start_);
    end_ -= start_;
    start_ = 0;
    if (bytes_.size() - end_ >= size) return bytes_.data() + end_;
  }
  const std::size_t wanted = end_ + size;
  bytes_.resize(std::max(wanted, std::min(bytes_.size() * 2, wanted + (1u << 20))));
  return bytes_.data() + end_;
}

void Buffer::drain(std::size_t size) {
  start_ += std::min(size, end_ - start_);
  if (start_ != end_) return;
  start_ = end_ = 0;
  if (bytes_.size() > k_keep) std::string{}.swap(bytes_);  // assignment would keep the capacity
}

}  // namespace tricorn
