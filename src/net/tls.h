// TLS for the server's side of a connection, with no I/O: cipher octets in, plain octets out, and back.
// TlsContext holds what listeners share (certificate, key, rules); Tls is one connection's state over it.
// Nothing of OpenSSL shows here; a TlsContext outlives its connections.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/outbox.h"
#include "http/host.h"
#include "net/protocols.h"

struct ssl_ctx_st;
struct ssl_st;

namespace tricorn {

struct TlsOptions {
  std::string certfile;          // PEM: the leaf, then its chain
  std::string keyfile;           // PEM; empty: the key is in certfile
  std::string keyfile_password;  // never asked for on a terminal
  std::string ca_certs;          // PEM; whom to trust for client certificates
  int verify_mode = 0;           // as Python's ssl.CERT_*: 0 none, 1 optional, 2 required
  std::string min_version = "TLSv1.2";
  std::string ciphers;                                 // OpenSSL's list for TLS 1.2; empty: ECDHE with AEAD
  std::vector<std::string> alpn = {"h2", "http/1.1"};  // in order of preference
};

class TlsContext {
 public:
  // An error is one plain line that names the file and what is wrong with it.
  static Result<std::unique_ptr<TlsContext>> make(const TlsOptions& options);
  ~TlsContext();

 private:
  friend class Tls;
  friend struct TlsCallbacks;
  TlsContext();
  Result<void> load(const TlsOptions& options);
  Result<void> load_chain(const TlsOptions& options);
  Result<void> load_key(const TlsOptions& options);
  Result<void> load_clients(const TlsOptions& options);

  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };
  std::unique_ptr<ssl_ctx_st, Free> context_;
  std::string certificate_;  // the leaf as PEM, for TlsFacts
  std::vector<Protocol> preference_;
};

class Tls {
 public:
  Tls(const TlsContext& context, Protocols protocols);
  ~Tls();

  // Takes all of `cipher`. Returns how many octets of `plain` it filled; `plain` must hold cipher.size() and one more
  // record (16 KiB). What has to be sent in answer (handshake, alerts) goes to `out`, also when it fails.
  Result<std::size_t> open(std::string_view cipher, std::span<char> plain, Outbox& out);
  // Moves all of `plain` into records at the back of `out`.
  Result<void> seal(Outbox& plain, Outbox& out);
  void close_notify(Outbox& out);

  bool established() const { return established_; }  // the handshake is over
  bool ended() const { return ended_; }              // the peer has sent close_notify
  bool plain_http() const { return plain_http_; }    // what failed was a request in plain HTTP
  // What ALPN chose; nothing if the client offered nothing.
  std::optional<Protocol> alpn() const { return alpn_; }
  const TlsFacts& facts() const { return facts_; }  // once established

 private:
  friend struct TlsCallbacks;
  Result<void> handshake();
  Result<void> write(std::string_view plain);
  Error broken(std::string_view doing);
  void learn_facts();

  struct Free {
    void operator()(ssl_st* ssl) const;
  };
  const TlsContext& context_;
  std::unique_ptr<ssl_st, Free> ssl_;
  std::string_view in_;    // what the record layer has not read of open()'s argument
  Outbox* out_ = nullptr;  // where the record layer writes, during a call
  Protocols protocols_;
  std::optional<Protocol> alpn_;
  TlsFacts facts_;
  bool established_ = false;
  bool ended_ = false;
  bool plain_http_ = false;
};

std::string tls_library();  // name and version, as linked

}  // namespace tricorn
