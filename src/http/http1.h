// HTTP/1.1 request messages out of octets, one after another; the only user of llhttp.
// Owns the limits of one message. What a well-formed head means is decided in http1_request.h.
//
// A step stops at every event: the caller acts, cuts `used` octets off its input and goes on until Event::none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "http/head.h"
#include "http/host.h"

namespace tricorn {

class RequestParser {
 public:
  enum class Event : std::uint8_t {
    none,  // the input is used up
    head,  // take_head() has the next request
    body,  // a part of its content
    end,   // it is complete; what is left of the input is the next message
    bad,   // not HTTP/1.1, or over a limit: answer status(), parse no more
  };
  struct Step {
    Event event;
    std::size_t used;
    std::string_view body{};
  };

  explicit RequestParser(const Limits& limits);
  ~RequestParser();

  Step next(std::string_view input);
  RequestHead take_head();
  int status() const;    // after Event::bad
  bool is_head() const;  // the method of the message at hand is HEAD

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tricorn
