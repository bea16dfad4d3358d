#include "base/outbox.h"

#include <unistd.h>

#include <algorithm>

namespace tricorn {
namespace {
constexpr std::size_t k_chunk = 16 * 1024;      // copied octets are gathered up to this
constexpr std::size_t k_spent = 64;             // spent segments are cut off above this
constexpr std::size_t k_file_read = 64 * 1024;  // a file range becomes memory in pieces of this
}  // namespace

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

std::uint64_t Outbox::Segment::size() const {
  switch (kind) {
    case Kind::copied: return bytes.size() - start;
    case Kind::borrowed: return view.size();
    case Kind::file: return range.size;
  }
  return 0;
}

std::string_view Outbox::Segment::memory() const {
  return kind == Kind::copied ? std::string_view{bytes}.substr(start) : view;
}

void Outbox::Segment::consume(std::uint64_t n) {
  switch (kind) {
    case Kind::copied: start += n; break;
    case Kind::borrowed: view.remove_prefix(n); break;
    case Kind::file:
      range.offset += n;
      range.size -= n;
      break;
  }
}

void Outbox::append(std::string_view bytes) {
  if (bytes.empty()) return;
  size_ += bytes.size();
  if (!segments_.empty()) {
    Segment& last = segments_.back();
    if (last.kind == Segment::Kind::copied && last.bytes.size() + bytes.size() <= k_chunk) {
      last.bytes.append(bytes);
      return;
    }
  }
  segments_.push_back({.kind = Segment::Kind::copied, .bytes = std::string{bytes}});
}

void Outbox::borrow(std::string_view bytes, Ref<Block> owner) {
  if (bytes.empty()) return;
  size_ += bytes.size();
  segments_.push_back({.kind = Segment::Kind::borrowed, .bytes = {}, .view = bytes, .owner = std::move(owner)});
}

void Outbox::append_file(Ref<File> file, std::uint64_t offset, std::uint64_t size) {
  if (size == 0) return;
  size_ += size;
  const FileRange range{file->fd(), offset, size};
  segments_.push_back({.kind = Segment::Kind::file, .bytes = {}, .range = range, .owner = Ref<Block>{file.get()}});
}

void Outbox::clear() {
  segments_.clear();
  first_ = 0;
  size_ = 0;
}

void Outbox::drop_first() {
  segments_[first_++] = {};
  if (first_ == segments_.size()) {
    segments_.clear();
    first_ = 0;
  } else if (first_ >= k_spent && first_ * 2 >= segments_.size()) {
    segments_.erase(segments_.begin(), segments_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
}

void Outbox::move_to(Outbox& to, std::uint64_t size) {
  size = std::min(size, size_);
  while (size > 0) {
    Segment& first = this->first();
    const std::uint64_t n = std::min(size, first.size());
    const bool whole = n == first.size();
    if (first.kind == Segment::Kind::copied) {
      const bool swap = whole && first.start == 0 && n > k_chunk / 4;
      if (swap) {
        to.size_ += n;
        to.segments_.push_back(std::move(first));
      } else {
        to.append(first.memory().substr(0, n));
      }
    } else {
      to.size_ += n;
      if (whole) {
        to.segments_.push_back(std::move(first));
      } else {
        Segment part{.kind = first.kind,
                     .bytes = {},
                     .view = first.view.substr(0, n),
                     .range = first.range,
                     .owner = first.owner};
        part.range.size = n;
        to.segments_.push_back(std::move(part));
      }
    }
    size_ -= n;
    size -= n;
    if (whole) {
      drop_first();
    } else {
      first.consume(n);
    }
  }
}

std::size_t Outbox::gather(std::span<iovec> into) const {
  std::size_t filled = 0;
  for (const Segment& segment : std::span{segments_}.subspan(first_)) {
    if (filled == into.size() || segment.kind == Segment::Kind::file) break;
    const std::string_view memory = segment.memory();
    into[filled++] = {const_cast<char*>(memory.data()), memory.size()};
  }
  return filled;
}

const Outbox::FileRange* Outbox::front_file() const {
  if (segments_.empty() || first().kind != Segment::Kind::file) return nullptr;
  return &first().range;
}

std::string_view Outbox::front() {
  if (segments_.empty()) return {};
  Segment& first = this->first();
  if (first.kind != Segment::Kind::file) return first.memory();
  std::string piece(std::min<std::uint64_t>(first.range.size, k_file_read), '\0');
  const ssize_t got = ::pread(first.range.fd, piece.data(), piece.size(), static_cast<off_t>(first.range.offset));
  if (got <= 0) return {};
  piece.resize(static_cast<std::size_t>(got));
  first.consume(piece.size());
  Segment memory{.kind = Segment::Kind::copied, .bytes = std::move(piece)};
  if (first.range.size == 0) first = std::move(memory);
  else segments_.insert(segments_.begin() + static_cast<std::ptrdiff_t>(first_), std::move(memory));
  return this->first().memory();
}

std::uint64_t Outbox::load(std::uint64_t most) {
  std::uint64_t loaded = 0;
  if (most == 0 || front().empty()) return loaded;
  for (const Segment& segment : std::span{segments_}.subspan(first_)) {
    if (loaded >= most || segment.kind == Segment::Kind::file) break;
    loaded += segment.size();
  }
  return std::min(loaded, most);
}

void Outbox::consume(std::uint64_t size) {
  size = std::min(size, size_);
  size_ -= size;
  while (size > 0) {
    const std::uint64_t n = std::min(size, first().size());
    first().consume(n);
    if (first().size() == 0) drop_first();
    size -= n;
  }
}

}  // namespace tricorn
