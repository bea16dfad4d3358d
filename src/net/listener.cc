#include "net/listener.h"

#include <sys/socket.h>
#include <uv.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "net/loop.h"
#include "net/server.h"

namespace tricorn {
namespace {
constexpr int k_share = 64;  // connections accepted before the others have their turn
}

Listener::Listener(Server& server, int fd, Protocols protocols, const TlsContext* tls)
    : server_(server), fd_(fd), protocols_(protocols), tls_(tls) {}

Listener::~Listener() {
  if (!handle_) return;
  uv_close(reinterpret_cast<uv_handle_t*>(handle_),
           [](uv_handle_t* handle) { delete reinterpret_cast<uv_poll_t*>(handle); });
}

Result<void> Listener::start() {
  auto* handle = new uv_poll_t;
  if (const int code = uv_poll_init(server_.loop().uv(), handle, fd_); code != 0) {
    delete handle;
    return fail_os("cannot accept connections", -code);
  }
  handle_ = handle;
  handle_->data = this;
  resume();
  return {};
}

void Listener::resume() {
  uv_poll_start(handle_, UV_READABLE, [](uv_poll_t* handle, int, int) {
    auto& listener = *static_cast<Listener*>(handle->data);
    listener.server_.loop().tick();
    listener.accept_some();
  });
}

void Listener::pause() { uv_poll_stop(handle_); }

void Listener::accept_some() {
  for (int i = 0; i < k_share; ++i) {
    if (!server_.admit()) return;  // only here is it known that somebody waits: libuv said so
    const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) server_.accepted(fd, *this);
    else if (failed(errno) == Next::later) return;
    if (server_.full()) return;
  }
}

Listener::Next Listener::failed(int error_number) {
  switch (error_number) {
    case EAGAIN: return Next::later;
    // What accept4 says when a client, or the network to it, was gone before its turn came (accept(2)).
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
    case EPERM: return Next::again;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM: return server_.starved(error_number) ? Next::later : Next::again;
    default:
      server_.host().notice(Notice::Level::error,
                            std::string{"cannot accept connections: "} + std::strerror(error_number));
      pause();
      return Next::later;
  }
}

}  // namespace tricorn
