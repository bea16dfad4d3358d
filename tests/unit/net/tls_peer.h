// The other side of TLS for the tests: a client over memory, and certificates made on the spot.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include "net/tls.h"

namespace tricorn::testing {

template <auto free>
struct Freer {
  template <class T>
  void operator()(T* object) const {
    free(object);
  }
};
using CertPtr = std::unique_ptr<X509, Freer<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;

// A self-signed certificate with its key.
struct Identity {
  KeyPtr key{EVP_EC_gen("P-256")};
  CertPtr certificate{X509_new()};

  explicit Identity(const std::string& name) {
    X509* x = certificate.get();
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_set_pubkey(x, key.get());
    X509_NAME* subject = X509_get_subject_name(x);
    const auto add = [&](const char* field, const std::string& text) {
      X509_NAME_add_entry_by_txt(subject, field, MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(text.data()),
                                 static_cast<int>(text.size()), -1, 0);
    };
    add("O", "tricorn, tests");
    add("CN", name);
    X509_set_issuer_name(x, subject);
    X509_EXTENSION* ca = X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints, "critical,CA:TRUE");
    X509_add_ext(x, ca, -1);
    X509_EXTENSION_free(ca);
    X509_sign(x, key.get(), EVP_sha256());
  }

  std::string certificate_pem() const {
    return pem([&](BIO* bio) { PEM_write_bio_X509(bio, certificate.get()); });
  }
  std::string key_pem(const std::string& password = "") const {
    return pem([&](BIO* bio) {
      PEM_write_bio_PKCS8PrivateKey(bio, key.get(), password.empty() ? nullptr : EVP_aes_128_cbc(), password.data(),
                                    static_cast<int>(password.size()), nullptr, nullptr);
    });
  }

 private:
  template <class Write>
  static std::string pem(Write&& write) {
    std::unique_ptr<BIO, Freer<BIO_free>> bio{BIO_new(BIO_s_mem())};
    write(bio.get());
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &data);
    return {data, static_cast<std::size_t>(size)};
  }
};

// A folder that goes with the test.
class Folder {
 public:
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "tricorn-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string write(const std::string& name, std::string_view text) const {
    std::ofstream{path_ / name} << text;
    return path_ / name;
  }
  std::string path(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// What a server of the tests is told; change it before make().
struct Certified {
  Folder folder;
  Identity identity{"localhost"};
  TlsOptions options{.certfile = folder.write("server.pem", identity.certificate_pem()),
                     .keyfile = folder.write("server.key", identity.key_pem()),
                     .keyfile_password = {},
                     .ca_certs = {},
                     .ciphers = {}};

  std::unique_ptr<TlsContext> make() const {
    auto made = TlsContext::make(options);
    if (!made) throw std::runtime_error{made.error().what};
    return std::move(*made);
  }
};

// A TLS client with no socket: what it wants to send is in out().
class TlsClient {
 public:
  explicit TlsClient(std::string alpn = "") : context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_session_cache_mode(context_.get(), SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context_.get(), [](SSL* ssl, SSL_SESSION* got) {
      static_cast<TlsClient*>(SSL_get_app_data(ssl))->ticket.reset(got);
      return 1;
    });
    alpn_ = std::move(alpn);
  }

  SSL_CTX* context() { return context_.get(); }
  SSL* ssl() { return ssl_.get(); }
  using Ticket = std::unique_ptr<SSL_SESSION, Freer<SSL_SESSION_free>>;
  Ticket ticket;  // the last one

  // Begins; the first flight is in out().
  void start(SSL_SESSION* resume = nullptr) {
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_app_data(ssl_.get(), this);
    SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(ssl_.get());
    if (!alpn_.empty())
      SSL_set_alpn_protos(ssl_.get(), reinterpret_cast<const unsigned char*>(alpn_.data()),
                          static_cast<unsigned>(alpn_.size()));
    if (resume) SSL_set_session(ssl_.get(), resume);
    step();
  }
  void feed(std::string_view cipher) {
    BIO_write(SSL_get_rbio(ssl_.get()), cipher.data(), static_cast<int>(cipher.size()));
    step();
  }
  void write(std::string_view text) { SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size())); }
  void close() { SSL_shutdown(ssl_.get()); }
  // In good order: OpenSSL forgets the session of a connection that was cut.
  Ticket leave() {
    close();
    return std::move(ticket);
  }
  std::string out() {
    char* data = nullptr;
    const long size = BIO_get_mem_data(SSL_get_wbio(ssl_.get()), &data);
    std::string bytes(data, static_cast<std::size_t>(size));
    BIO_reset(SSL_get_wbio(ssl_.get()));
    return bytes;
  }
  bool established() const { return SSL_is_init_finished(ssl_.get()) == 1; }
  std::string chosen() const {
    const unsigned char* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_.get(), &name, &size);
    return {reinterpret_cast<const char*>(name), size};
  }

  std::string plain;   // what arrived
  bool ended = false;  // close_notify came
  int alert = 0;       // OpenSSL's reason, when the server broke it off

 private:
  void step() {
    ERR_clear_error();
    if (!established() && SSL_do_handshake(ssl_.get()) != 1) return note();
    char piece[4096];
    int n = 0;
    while ((n = SSL_read(ssl_.get(), piece, sizeof piece)) > 0) plain.append(piece, static_cast<std::size_t>(n));
    if (SSL_get_error(ssl_.get(), n) == SSL_ERROR_ZERO_RETURN) ended = true;
    note();
  }
  void note() {
    if (const unsigned long code = ERR_peek_last_error(); code != 0) alert = ERR_GET_REASON(code);
    ERR_clear_error();
  }

  std::unique_ptr<SSL_CTX, Freer<SSL_CTX_free>> context_;
  std::unique_ptr<SSL, Freer<SSL_free>> ssl_;
  std::string alpn_;
};

inline std::string take(Outbox& box) {
  std::string bytes;
  while (!box.empty()) {
    const std::string_view front = box.front();
    if (front.empty()) break;
    bytes += front;
    box.consume(front.size());
  }
  return bytes;
}

}  // namespace tricorn::testing
