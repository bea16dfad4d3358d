// Inbound octets: append at the back, look at all of it as one view, drain from the front.
// Views are valid until the next append. Memory is given back when a large buffer runs empty.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tricorn {

class Buffer {
 public:
  void append(std::string_view bytes);
  // Room for `size` more octets at the back; `commit` says how many were written there.
  char* reserve(std::size_t size);
  void commit(std::size_t size) { end_ += size; }

  std::string_view view() const { return {bytes_.data() + start_, end_ - start_}; }
  std::size_t size() const { return end_ - start_; }
  bool empty() const { return start_ == end_; }
  void drain(std::size_t size);
  void clear() { drain(size()); }

 private:
  std::string bytes_;  // size() is the capacity in use; [start_, end_) is the content
  std::size_t start_ = 0;
  std::size_t end_ = 0;
};

}  // namespace tricorn
