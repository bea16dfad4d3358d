#include "net/socket.h"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>

namespace tricorn {
namespace {

constexpr std::size_t k_pieces = 64;
constexpr std::uint64_t k_file_share = 1u << 20;  // of one file in one go: other connections wait meanwhile

struct Address {
  std::string host;
  int port;
};

Address ip4(const sockaddr_storage& storage) {
  const auto& address = reinterpret_cast<const sockaddr_in&>(storage);
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return {text.data(), ntohs(address.sin_port)};
}

// By getnameinfo, which also names the zone of a link-local address.
Address ip6(const sockaddr_storage& storage) {
  const auto& address = reinterpret_cast<const sockaddr_in6&>(storage);
  std::array<char, NI_MAXHOST> text{};
  getnameinfo(reinterpret_cast<const sockaddr*>(&storage), sizeof address, text.data(), text.size(), nullptr, 0,
              NI_NUMERICHOST);
  return {text.data(), ntohs(address.sin6_port)};
}

Address unix_path(const sockaddr_storage& storage, socklen_t size) {
  const auto& address = reinterpret_cast<const sockaddr_un&>(storage);
  const std::size_t start = offsetof(sockaddr_un, sun_path);
  const std::size_t length = size > start ? size - start : 0;
  std::string path{address.sun_path, std::min(length, sizeof address.sun_path)};
  if (!path.empty() && path[0] != '\0') path.resize(std::min(path.find('\0'), path.size()));
  return {std::move(path), -1};
}

using Asks = int (*)(int, sockaddr*, socklen_t*);

Address address(int fd, Asks ask) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (ask(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return {{}, 0};
  switch (storage.ss_family) {
    case AF_INET: return ip4(storage);
    case AF_INET6: return ip6(storage);
    case AF_UNIX: return unix_path(storage, size);
    default: return {{}, -1};
  }
}

bool passing(int error_number) {
  return error_number == EAGAIN || error_number == EWOULDBLOCK || error_number == EINTR;
}

Result<Received> receive_with(int fd, std::span<char> buffer, int flags) {
  const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), flags);
  if (n > 0) return Received{Received::Kind::bytes, {buffer.data(), static_cast<std::size_t>(n)}};
  if (n == 0) return Received{Received::Kind::end};
  if (passing(errno)) return Received{Received::Kind::nothing};
  return std::unexpected{Error{Fault::gone, "the peer has reset the connection"}};
}

struct Offer {
  std::uint64_t size;  // what was offered to the kernel
  ssize_t sent;
};

Offer send_memory(int fd, const Outbox& out) {
  std::array<iovec, k_pieces> pieces;
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = out.gather(pieces);
  std::uint64_t size = 0;
  for (const iovec& piece : std::span{pieces}.first(message.msg_iovlen)) size += piece.iov_len;
  const int more = size < out.size() ? MSG_MORE : 0;  // a head shares its packet with the start of a file
  return {size, ::sendmsg(fd, &message, MSG_NOSIGNAL | more)};
}

Offer send_file(int fd, const Outbox::FileRange& file) {
  auto offset = static_cast<off_t>(file.offset);
  const std::uint64_t size = std::min(file.size, k_file_share);
  return {size, ::sendfile(fd, file.fd, &offset, size)};
}

}  // namespace

Peer peer_of(int fd) {
  Address client = address(fd, getpeername);
  Address server = address(fd, getsockname);
  if (server.port < 0) client = {{}, 0};  // a Unix client has no address that means anything
  return {.client_host = std::move(client.host),
          .client_port = client.port,
          .server_host = std::move(server.host),
          .server_port = server.port};
}

void set_no_delay(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Result<Received> receive(int fd, std::span<char> buffer) { return receive_with(fd, buffer, 0); }

Result<Received> peek(int fd) {
  char octet = 0;
  auto received = receive_with(fd, {&octet, 1}, MSG_PEEK);
  if (received) received->bytes = {};
  return received;
}

Hangup hangup(int fd) {
  pollfd look{.fd = fd, .events = 0, .revents = 0};
  if (::poll(&look, 1, 0) != 1) return Hangup::none;
  if (look.revents & POLLERR) return Hangup::reset;
  return look.revents & POLLHUP ? Hangup::closed : Hangup::none;
}

Result<std::uint64_t> send(int fd, Outbox& out) {
  std::uint64_t total = 0;
  while (!out.empty()) {
    const Outbox::FileRange* file = out.front_file();
    const auto [size, sent] = file ? send_file(fd, *file) : send_memory(fd, out);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && passing(errno)) break;
    if (sent < 0 && file && errno != EPIPE && errno != ECONNRESET) return fail_os("cannot send a file", errno);
    if (sent < 0) return fail(Fault::gone, "the peer has closed the connection");
    if (sent == 0) return fail(Fault::os, "a file ended before what was promised of it");
    out.consume(static_cast<std::uint64_t>(sent));
    total += static_cast<std::uint64_t>(sent);
    if (static_cast<std::uint64_t>(sent) < size) break;
  }
  return total;
}

std::uint64_t unacknowledged(int fd) {
  int size = 0;
  return ::ioctl(fd, SIOCOUTQ, &size) == 0 && size > 0 ? static_cast<std::uint64_t>(size) : 0;
}

void forget_unsent(int fd) {
  const linger none{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

}  // namespace tricorn
