// Outbound octets as a queue of segments: copied octets, borrowed octets, ranges of a file.
// Nothing large is copied. A borrowed block is released when the last segment that uses it is gone.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ref.h"

namespace tricorn {

// Octets that somebody else owns; the subclass's destructor gives them back (on the loop thread, without the GIL).
class Block : public Counted {};

// An open regular file of that many octets; the destructor closes the descriptor.
class File : public Block {
 public:
  File(int fd, std::uint64_t size) : fd_(fd), size_(size) {}
  ~File() override;
  int fd() const { return fd_; }
  std::uint64_t size() const { return size_; }

 private:
  int fd_;
  std::uint64_t size_;
};

class Outbox {
 public:
  // Below this size borrowing costs more than copying.
  static constexpr std::size_t k_borrow = 4096;

  void append(std::string_view bytes);
  // `bytes` stay valid while `owner` lives.
  void borrow(std::string_view bytes, Ref<Block> owner);
  void append_file(Ref<File> file, std::uint64_t offset, std::uint64_t size);

  std::uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  void clear();
  // Moves the first `size` octets (at most all) to the back of `to`.
  void move_to(Outbox& to, std::uint64_t size);

  // The leading memory segments, for writev; stops at a file range. Returns how many were filled.
  std::size_t gather(std::span<iovec> into) const;
  // The leading file range, if a file range comes first.
  struct FileRange {
    int fd;
    std::uint64_t offset;
    std::uint64_t size;
  };
  const FileRange* front_file() const;
  // A view of the leading octets in memory. A leading file range is read into memory first (for TLS): at most 64 KiB
  // at once. Returns an empty view when the file ended early or failed to read; then the outbox cannot be sent.
  std::string_view front();
  // How many of the first `most` octets are in memory. A leading file range is read first, as by front(): 0 means that
  // it cannot be.
  std::uint64_t load(std::uint64_t most);
  void consume(std::uint64_t size);

 private:
  struct Segment {
    enum class Kind : std::uint8_t { copied, borrowed, file } kind;
    std::string bytes;        // copied
    std::size_t start = 0;    // copied: octets already consumed
    std::string_view view{};  // borrowed
    FileRange range{};        // file
    Ref<Block> owner{};       // borrowed, file
    std::uint64_t size() const;
    std::string_view memory() const;
    void consume(std::uint64_t n);
  };

  Segment& first() { return segments_[first_]; }
  const Segment& first() const { return segments_[first_]; }
  void drop_first();

  // A vector and an index, not a deque: most answers are one segment, and an empty deque allocates as well.
  std::vector<Segment> segments_;  // those before first_ are spent
  std::size_t first_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace tricorn
