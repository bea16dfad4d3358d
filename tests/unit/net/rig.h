// A server on a loop of its own and clients over real sockets, all in one thread: `until` turns the loop.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "net/loop.h"
#include "net/server.h"
#include "net/tls_peer.h"
#include "testing.h"

namespace tricorn::testing {

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { close(); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  operator int() const { return fd_; }

 private:
  int fd_;
};

inline sockaddr_in loopback(int port = 0) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

template <class Address>
Fd listening(const Address& address) {
  Fd fd{::socket(reinterpret_cast<const sockaddr&>(address).sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(fd, 128), 0);
  return fd;
}

// A blocking-free client. `in` has all that came, `ended` and `reset` tell how it ended.
struct Client {
  Fd fd;
  std::string in;
  bool ended = false, reset = false;

  explicit Client(int listener, int receive_buffer = 0) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
    fd = Fd{::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (receive_buffer > 0) ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), size), 0) << std::strerror(errno);
  }
  void send(std::string_view bytes) const {
    EXPECT_EQ(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  // As much as the kernel takes now.
  std::size_t send_some(std::string_view bytes) const {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return n > 0 ? static_cast<std::size_t>(n) : 0;
  }
  void half_close() const { ::shutdown(fd, SHUT_WR); }
  void abort() {
    const linger none{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    fd.close();
  }
  void receive() {
    static std::array<char, 1 << 16> buffer;
    while (!ended && !reset) {
      const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (n > 0) in.append(buffer.data(), static_cast<std::size_t>(n));
      else if (n == 0) ended = true;
      else if (errno == EAGAIN) return;
      else reset = true;
    }
  }
  bool has(std::string_view text) {
    receive();
    return in.find(text) != std::string::npos;
  }
  bool done() {
    receive();
    return ended || reset;
  }
};

struct Rig {
  std::unique_ptr<Loop> loop = std::move(*Loop::make());
  LambdaApp app;
  std::vector<std::string> notices;
  std::unique_ptr<Server> server;
  Fd listener;

  explicit Rig(const Limits& limits = {}, Protocols protocols = {}, const TlsContext* tls = nullptr)
      : server(std::make_unique<Server>(*loop, app, limits)), listener(listening(loopback())) {
    server->on_notice([this](const Notice& notice) { notices.push_back(notice.text); });
    server->host().date_header = server->host().server_header = false;
    EXPECT_TRUE(server->listen(listener, protocols, tls));
  }
  ~Rig() {
    if (!server) return;
    server->close();
    turn(0.0);
    for (auto& call : app.calls) call->exchange.reset();
    server.reset();
  }

  void turn(double timeout) {
    loop->poll(timeout);
    loop->dispatch();
  }
  // Turns the loop until `test` is true; false if that takes more than some seconds.
  template <class Test>
  bool until(Test&& test, double seconds = 10) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (!test()) {
      if (std::chrono::steady_clock::now() > end) return false;
      turn(0.002);
    }
    return true;
  }
  void for_a_while(double seconds) {
    until([] { return false; }, seconds);
  }
  Client connect() const { return Client{listener}; }
  Seen& call(std::size_t i = 0) { return *app.calls.at(i); }
};

inline std::string get(std::string_view target = "/") {
  return "GET " + std::string{target} + " HTTP/1.1\r\nhost: a\r\n\r\n";
}

inline std::string post(std::string_view body, std::string_view more = "") {
  return "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: " + std::to_string(body.size()) + "\r\n" + std::string{more} +
         "\r\n" + std::string{body};
}

inline std::string big(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>('a' + i % 23);
  return bytes;
}

// The body behind the first head.
inline std::string_view body_of(const Client& client) {
  const std::size_t at = client.in.find("\r\n\r\n");
  return at == std::string::npos ? std::string_view{} : std::string_view{client.in}.substr(at + 4);
}

inline void reply_with_file(Seen& seen, const std::string& path, std::uint64_t size) {
  ResponseHead head{.status = 200, .headers = {}};
  head.headers.add("content-length", std::to_string(size));
  EXPECT_TRUE(seen.exchange->respond(std::move(head)));
  EXPECT_TRUE(seen.exchange->write_file(make_ref<File>(::open(path.c_str(), O_RDONLY | O_CLOEXEC), size), 0, size));
  EXPECT_TRUE(seen.exchange->finish());
  LambdaApp::leave(seen);
}

// Preface, SETTINGS, and HEADERS with END_STREAM: GET / at authority "a" (RFC 9113 3.4, RFC 7541 A).
inline std::string http2_get() {
  const std::string settings("\0\0\0\x04\0\0\0\0\0", 9);
  const std::string fields =
      "\x82\x86\x84\x41\x01"
      "a";
  std::string headers("\0\0\x06\x01\x05\0\0\0\x01", 9);
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings + headers + fields;
}

}  // namespace tricorn::testing
