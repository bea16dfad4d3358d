#include "net/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace tricorn {
namespace {

// RFC 9113 9.2.2 forbids for HTTP/2 what is not ephemeral and AEAD; there is no reason to offer it to HTTP/1 either.
constexpr const char* k_ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr long k_client_chain = 32 * 1024;
constexpr std::size_t k_record = 16 * 1024;
constexpr unsigned char k_session_id_context[] = "tricorn";

template <auto free>
struct Freer {
  template <class T>
  void operator()(T* object) const {
    free(object);
  }
};
using BioPtr = std::unique_ptr<BIO, Freer<BIO_free>>;
using CertPtr = std::unique_ptr<X509, Freer<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;

std::unexpected<Error> bad(const std::string& name, std::string_view what) {
  ERR_clear_error();
  return fail(Fault::value, name + ": " + std::string{what});
}

std::string reason(unsigned long code, std::string_view otherwise) {
  const char* text = ERR_reason_error_string(code);
  return text ? text : std::string{otherwise};
}

Result<BioPtr> read_file(const std::string& name) {
  errno = 0;
  std::ifstream file{name, std::ios::binary};
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file || errno == EISDIR) return bad(name, errno != 0 ? std::strerror(errno) : "cannot be read");
  const std::string bytes = std::move(text).str();
  BioPtr bio{BIO_new(BIO_s_mem())};
  BIO_write(bio.get(), bytes.data(), static_cast<int>(bytes.size()));
  return bio;
}

std::string to_pem(X509* certificate) {
  BioPtr bio{BIO_new(BIO_s_mem())};
  PEM_write_bio_X509(bio.get(), certificate);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string rfc4514(const X509_NAME* name) {
  BioPtr bio{BIO_new(BIO_s_mem())};
  X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_RFC2253 & ~static_cast<unsigned long>(ASN1_STRFLGS_ESC_MSB));
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

struct Password {
  const std::string& text;
  bool asked = false;
};

int give_password(char* into, int size, int, void* context) {
  auto& password = *static_cast<Password*>(context);
  password.asked = true;
  if (password.text.size() > static_cast<std::size_t>(size)) return -1;
  std::memcpy(into, password.text.data(), password.text.size());
  return password.text.empty() ? -1 : static_cast<int>(password.text.size());
}

bool good_for_http2(const SSL* ssl) {
  if (SSL_version(ssl) >= TLS1_3_VERSION) return true;
  const SSL_CIPHER* cipher = SSL_get_pending_cipher(ssl);
  if (!cipher || !SSL_CIPHER_is_aead(cipher)) return false;
  const int exchange = SSL_CIPHER_get_kx_nid(cipher);
  return exchange == NID_kx_ecdhe || exchange == NID_kx_dhe;
}

constexpr std::string_view alpn_name(Protocol protocol) { return protocol == Protocol::http2 ? "h2" : "http/1.1"; }

}  // namespace

// What OpenSSL calls back. Each recovers its Tls and does one thing.
struct TlsCallbacks {
  static int read(BIO* bio, char* into, int size) {
    auto& tls = *static_cast<Tls*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    const std::size_t n = std::min(static_cast<std::size_t>(size), tls.in_.size());
    if (n == 0) {
      BIO_set_retry_read(bio);
      return -1;
    }
    std::memcpy(into, tls.in_.data(), n);
    tls.in_.remove_prefix(n);
    return static_cast<int>(n);
  }

  static int write(BIO* bio, const char* bytes, int size) {
    auto& tls = *static_cast<Tls*>(BIO_get_data(bio));
    tls.out_->append({bytes, static_cast<std::size_t>(size)});
    return size;
  }

  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  static int create(BIO* bio) {
    BIO_set_init(bio, 1);
    return 1;
  }

  static const BIO_METHOD* method() {
    static const std::unique_ptr<BIO_METHOD, Freer<BIO_meth_free>> made = [] {
      BIO_METHOD* method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "connection");
      BIO_meth_set_read(method, read);
      BIO_meth_set_write(method, write);
      BIO_meth_set_ctrl(method, control);
      BIO_meth_set_create(method, create);
      return std::unique_ptr<BIO_METHOD, Freer<BIO_meth_free>>{method};
    }();
    return made.get();
  }

  // Our order, among what the client offers and the listener speaks (RFC 7301 3.2).
  static int choose(SSL* ssl, const unsigned char** out, unsigned char* size, const unsigned char* offered,
                    unsigned int offered_size, void*) {
    auto& tls = *static_cast<Tls*>(SSL_get_app_data(ssl));
    const std::string_view list{reinterpret_cast<const char*>(offered), offered_size};
    for (Protocol protocol : tls.context_.preference_) {
      if (!tls.protocols_.has(protocol)) continue;
      if (protocol == Protocol::http2 && !good_for_http2(ssl)) continue;
      const auto found = find(list, alpn_name(protocol));
      if (found.empty()) continue;
      tls.alpn_ = protocol;
      *out = reinterpret_cast<const unsigned char*>(found.data());
      *size = static_cast<unsigned char>(found.size());
      return SSL_TLSEXT_ERR_OK;
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;  // no_application_protocol
  }

  // OpenSSL has checked the form of the list: each name behind its length.
  static std::string_view find(std::string_view list, std::string_view name) {
    while (!list.empty()) {
      const std::size_t size = static_cast<unsigned char>(list[0]);
      const std::string_view item = list.substr(1, size);
      if (item == name) return item;
      list.remove_prefix(std::min(list.size(), 1 + size));
    }
    return {};
  }
};

TlsContext::TlsContext() = default;
TlsContext::~TlsContext() = default;

void TlsContext::Free::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

Result<std::unique_ptr<TlsContext>> TlsContext::make(const TlsOptions& options) {
  std::unique_ptr<TlsContext> made{new TlsContext};
  made->context_.reset(SSL_CTX_new(TLS_server_method()));
  if (!made->context_) return fail(Fault::os, "OpenSSL cannot make a context");
  if (auto ok = made->load(options); !ok) return std::unexpected{ok.error()};
  return made;
}

Result<void> TlsContext::load(const TlsOptions& options) {
  SSL_CTX* context = context_.get();
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  // Sessions resume by ticket; a cache here would cost memory for every client that never returns.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_session_id_context(context, k_session_id_context, sizeof k_session_id_context - 1);
  SSL_CTX_set_max_cert_list(context, k_client_chain);
  SSL_CTX_set_alpn_select_cb(context, TlsCallbacks::choose, nullptr);
  for (const std::string& name : options.alpn) {
    if (name == "h2") preference_.push_back(Protocol::http2);
    else if (name == "http/1.1") preference_.push_back(Protocol::http1);
    else return bad(name, "no such ALPN protocol here: h2 or http/1.1");
  }
  const bool old = options.min_version == "TLSv1.2";
  if (!old && options.min_version != "TLSv1.3")
    return bad(options.min_version, "not a TLS version: TLSv1.2 or TLSv1.3");
  SSL_CTX_set_min_proto_version(context, old ? TLS1_2_VERSION : TLS1_3_VERSION);
  const std::string ciphers = options.ciphers.empty() ? k_ciphers : options.ciphers;
  if (SSL_CTX_set_cipher_list(context, ciphers.c_str()) != 1) return bad(ciphers, "no such cipher is known to OpenSSL");
  if (auto ok = load_chain(options); !ok) return ok;
  if (auto ok = load_key(options); !ok) return ok;
  return load_clients(options);
}

Result<void> TlsContext::load_chain(const TlsOptions& options) {
  auto file = read_file(options.certfile);
  if (!file) return std::unexpected{file.error()};
  CertPtr leaf{PEM_read_bio_X509(file->get(), nullptr, give_password, nullptr)};
  if (!leaf) return bad(options.certfile, "has no certificate in PEM format");
  if (SSL_CTX_use_certificate(context_.get(), leaf.get()) != 1)
    return bad(options.certfile, reason(ERR_peek_last_error(), "the certificate cannot be used"));
  certificate_ = to_pem(leaf.get());
  while (CertPtr next{PEM_read_bio_X509(file->get(), nullptr, nullptr, nullptr)})
    SSL_CTX_add1_chain_cert(context_.get(), next.get());
  if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
    return bad(options.certfile, "a certificate in the chain is damaged");
  ERR_clear_error();
  return {};
}

Result<void> TlsContext::load_key(const TlsOptions& options) {
  const std::string& name = options.keyfile.empty() ? options.certfile : options.keyfile;
  auto file = read_file(name);
  if (!file) return std::unexpected{file.error()};
  Password password{options.keyfile_password};
  KeyPtr key{PEM_read_bio_PrivateKey(file->get(), nullptr, give_password, &password)};
  if (!key && password.asked)
    return bad(name, password.text.empty() ? "the private key needs a password" : "the password is wrong");
  if (!key) return bad(name, "has no private key in PEM format");
  SSL_CTX_use_PrivateKey(context_.get(), key.get());
  if (SSL_CTX_check_private_key(context_.get()) != 1)
    return bad(name, "the private key does not belong to the certificate in " + options.certfile);
  return {};
}

Result<void> TlsContext::load_clients(const TlsOptions& options) {
  const std::array modes{SSL_VERIFY_NONE, SSL_VERIFY_PEER, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT};
  if (options.verify_mode < 0 || options.verify_mode > 2) return bad("verify mode", "must be 0, 1 or 2");
  SSL_CTX_set_verify(context_.get(), modes[static_cast<std::size_t>(options.verify_mode)], nullptr);
  if (options.ca_certs.empty()) return {};
  auto file = read_file(options.ca_certs);
  if (!file) return std::unexpected{file.error()};
  bool any = false;
  while (CertPtr authority{PEM_read_bio_X509(file->get(), nullptr, nullptr, nullptr)}) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context_.get()), authority.get());
    SSL_CTX_add_client_CA(context_.get(), authority.get());
    any = true;
  }
  if (!any) return bad(options.ca_certs, "has no certificate in PEM format");
  ERR_clear_error();
  return {};
}

Tls::Tls(const TlsContext& context, Protocols protocols)
    : context_(context), ssl_(SSL_new(context.context_.get())), protocols_(protocols) {
  BIO* bio = BIO_new(TlsCallbacks::method());
  BIO_set_data(bio, this);
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_app_data(ssl_.get(), this);
  SSL_set_accept_state(ssl_.get());
}

Tls::~Tls() = default;

void Tls::Free::operator()(ssl_st* ssl) const { SSL_free(ssl); }

Result<std::size_t> Tls::open(std::string_view cipher, std::span<char> plain, Outbox& out) {
  in_ = cipher;
  out_ = &out;
  ERR_clear_error();
  if (auto ok = handshake(); !ok) return std::unexpected{ok.error()};
  std::size_t filled = 0;
  while (established_ && !ended_ && filled < plain.size()) {
    std::size_t n = 0;
    const int ok = SSL_read_ex(ssl_.get(), plain.data() + filled, plain.size() - filled, &n);
    filled += n;
    if (ok == 1) continue;
    const int why = SSL_get_error(ssl_.get(), ok);
    if (why == SSL_ERROR_WANT_READ) break;
    if (why != SSL_ERROR_ZERO_RETURN) return std::unexpected{broken("TLS")};
    ended_ = true;
  }
  return filled;
}

Result<void> Tls::handshake() {
  if (established_) return {};
  const int ok = SSL_do_handshake(ssl_.get());
  if (ok == 1) {
    established_ = true;
    learn_facts();
    return {};
  }
  if (SSL_get_error(ssl_.get(), ok) == SSL_ERROR_WANT_READ) return {};
  return std::unexpected{broken("TLS handshake")};
}

Error Tls::broken(std::string_view doing) {
  const unsigned long code = ERR_peek_last_error();
  const int why = ERR_GET_REASON(code);
  plain_http_ = !established_ && (why == SSL_R_HTTP_REQUEST || why == SSL_R_HTTPS_PROXY_REQUEST);
  Error error{Fault::protocol, std::string{doing} + ": " + reason(code, "failed")};
  ERR_clear_error();
  return error;
}

void Tls::learn_facts() {
  const SSL* ssl = ssl_.get();
  facts_.server_cert = context_.certificate_;
  facts_.version = SSL_version(ssl);
  if (const SSL_CIPHER* cipher = SSL_get_current_cipher(ssl)) facts_.cipher_suite = SSL_CIPHER_get_protocol_id(cipher);
  X509* client = SSL_get0_peer_certificate(ssl);
  if (!client) return;
  facts_.client_name = rfc4514(X509_get_subject_name(client));
  facts_.client_chain.push_back(to_pem(client));
  const STACK_OF(X509)* chain = SSL_get_peer_cert_chain(ssl);  // a server's view leaves the leaf out
  for (int i = 0; i < sk_X509_num(chain); ++i) facts_.client_chain.push_back(to_pem(sk_X509_value(chain, i)));
  if (const long verdict = SSL_get_verify_result(ssl); verdict != X509_V_OK)
    facts_.client_error = X509_verify_cert_error_string(verdict);
}

Result<void> Tls::seal(Outbox& plain, Outbox& out) {
  out_ = &out;
  ERR_clear_error();
  std::array<char, k_record> record;
  while (!plain.empty()) {
    const std::string_view front = plain.front();
    if (front.empty()) return fail(Fault::os, "a file ended before what was promised of it");
    if (front.size() >= k_record || front.size() == plain.size()) {
      if (auto ok = write(front); !ok) return ok;
      plain.consume(front.size());
      continue;
    }
    // Small pieces share a record: each record costs 22 octets and a pass of the cipher's set-up.
    std::size_t size = 0;
    while (size < k_record && !plain.empty()) {
      const std::string_view piece = plain.front().substr(0, k_record - size);
      if (piece.empty()) return fail(Fault::os, "a file ended before what was promised of it");
      std::memcpy(record.data() + size, piece.data(), piece.size());
      size += piece.size();
      plain.consume(piece.size());
    }
    if (auto ok = write({record.data(), size}); !ok) return ok;
  }
  return {};
}

Result<void> Tls::write(std::string_view plain) {
  std::size_t n = 0;
  if (SSL_write_ex(ssl_.get(), plain.data(), plain.size(), &n) != 1) return std::unexpected{broken("TLS")};
  return {};
}

void Tls::close_notify(Outbox& out) {
  if (!established_) return;
  out_ = &out;
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

std::string tls_library() { return std::string{"OpenSSL "} + OpenSSL_version(OPENSSL_VERSION_STRING); }

}  // namespace tricorn
