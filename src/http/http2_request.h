// A request head built from HPACK fields as they are decoded, and the rules that nghttp2 leaves to us (RFC
// 9113 8.2, 8.3): what reaches the application could be sent on over HTTP/1.1 unchanged. Memory is bounded by the
// limits; what is over them is counted and dropped, so that the decoder stays in step.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "http/head.h"
#include "http/host.h"

namespace tricorn {

class RequestBuilder {
 public:
  enum class Part : std::uint8_t { head, trailers };
  // Whether the block is still worth decoding. `absurd`: several times over the limit.
  enum class Size : std::uint8_t { fits, over, absurd };

  explicit RequestBuilder(const Limits& limits) : limits_(limits) {}

  void begin(Part part);
  Size field(std::string_view name, std::string_view value);

  // The head, or the status to refuse it with. Empties the builder.
  std::expected<RequestHead, int> finish();
  Size size() const { return size_; }
  std::string_view method() const { return head_.method; }
  std::optional<std::uint64_t> content_length() const { return content_length_; }
  bool expects_continue() const { return expects_continue_; }

 private:
  void measure(std::string_view name, std::string_view value);
  void pseudo(std::string_view name, std::string_view value);
  void host_first();
  void regular(std::string_view name, std::string_view value);
  void cookie(std::string_view crumb);
  int fault() const;

  const Limits& limits_;
  Part part_ = Part::head;
  Size size_ = Size::fits;
  RequestHead head_;
  std::string authority_;
  std::string cookie_;
  std::uint64_t octets_ = 0;
  std::uint64_t count_ = 0;
  std::uint32_t crumbs_ = 0;
  std::uint32_t hosts_ = 0;
  std::optional<std::uint64_t> content_length_;
  bool has_authority_ = false;
  bool hosts_differ_ = false;
  bool expects_continue_ = false;
};

}  // namespace tricorn
