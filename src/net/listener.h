// One listening socket, bound by somebody else and still theirs. Accepts what the server admits.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "net/protocols.h"

struct uv_poll_s;

namespace tricorn {

class Server;
class TlsContext;

class Listener {
 public:
  Listener(Server& server, int fd, Protocols protocols, const TlsContext* tls);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  Result<void> start();
  void pause();
  void resume();

  Protocols protocols() const { return protocols_; }
  const TlsContext* tls() const { return tls_; }

 private:
  void accept_some();
  // Whether accepting goes on.
  enum class Next : std::uint8_t { again, later };
  Next failed(int error_number);

  Server& server_;
  const int fd_;
  const Protocols protocols_;
  const TlsContext* const tls_;
  uv_poll_s* handle_ = nullptr;  // outlives this object until libuv lets go of it
};

}  // namespace tricorn
