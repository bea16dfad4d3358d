// One accepted socket: TLS if its listener has it, the session, and the octets that the socket has not taken yet.
// Owns the descriptor. Decides which protocol is spoken and how the socket ends; what is spoken is the session's.
//
// Three entry points do I/O: on_read, on_writable and flush; they and on_tick are the only callers of close(error).
// It dies only in libuv's close callback.
#pragma once

#include <uv.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/list.h"
#include "base/outbox.h"
#include "http/host.h"
#include "http/session.h"
#include "net/protocols.h"
#include "net/tls.h"

namespace tricorn {

struct Open;
class Listener;
class Server;

class Connection final : public DirtyHook, public Hook<Open> {
 public:
  // Takes over `fd`. Returns nothing when libuv cannot watch it; the descriptor is closed then.
  static Connection* make(Server& server, int fd, const Listener& listener);

  void flush();
  void on_tick(Millis now);
  // No new requests: closes when nothing is in flight any more.
  void drain();
  // May be closed at once when connections are scarce.
  bool idle(Millis now) const;
  void close();

 private:
  enum class Stage : std::uint8_t {
    handshake,  // TLS
    sniff,      // cleartext that may be either protocol
    open,       // there is a session
    ending,     // the session is done: send the rest, then FIN, then wait for the peer's
    closed,
  };

  Connection(Server& server, int fd, const Listener& listener);
  ~Connection();
  void start();

  static void on_io(uv_poll_t* handle, int status, int events);
  void on_read(int events);
  void on_writable();
  template <class Work>
  void enter(Work&& work) noexcept;
  void close(const Error& error);

  Result<void> read(int events);
  Result<void> look_ahead(int events);
  Result<void> take(std::string_view bytes);
  Result<void> take_cipher(std::string_view bytes);
  Result<void> sniff(std::string_view bytes);
  void feed(std::string_view plain);
  Result<void> end_of_input();
  Result<void> discard();
  void open_session(Protocol protocol);

  Result<void> push();
  Result<void> fill();
  Result<void> send_out();
  enum class Quiet : std::uint8_t { yes, no };  // whether nothing was sent just before
  Result<void> finish(Quiet quiet);
  Result<void> refuse_tls();
  Result<void> end();
  void drop_session();
  Result<void> tick(Millis now);
  void look_for_progress(Millis now);
  Result<void> overdue(Millis now) const;
  bool hung_up() const;

  bool wants_input() const;
  bool nothing_unread() const;
  void keep_session_moving();
  int wanted() const;
  void watch();
  void watch(int events);
  void pause();

  Server& server_;
  uv_poll_t poll_{};
  const int fd_;
  int interest_ = 0;
  Stage stage_ = Stage::open;
  const Protocols protocols_;
  bool deaf_ = false;        // the session takes no more input
  bool peer_ended_ = false;  // its FIN was read
  bool left_ = false;        // its FIN is known of, behind octets that are not wanted yet
  bool fin_sent_ = false;
  std::uint32_t discarded_ = 0;
  Millis since_;              // when this stage, or in `sniff` the first octet, began
  Millis moved_;              // when output last moved
  Millis heard_;              // when something last came
  std::uint64_t queued_ = 0;  // what the kernel held when we last looked
  std::string held_;          // the start of what may become an HTTP/2 preface
  Peer peer_;
  std::optional<Tls> tls_;
  Outbox out_;  // ready for the socket: sealed, if there is TLS
  std::unique_ptr<Session> session_;
};

}  // namespace tricorn
