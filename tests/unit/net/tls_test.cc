#include "net/tls.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "net/tls_peer.h"
#include "testing.h"

namespace tricorn::testing {
namespace {

constexpr Protocols k_both{};
const std::string k_alpn_both = "\x02h2\x08http/1.1";

// A server and a client that talk over memory, in pieces of `piece` octets (0: whole).
struct Pair {
  Certified certified;
  std::unique_ptr<TlsContext> context;
  TlsClient client;
  std::unique_ptr<Tls> server;
  std::string plain;  // what the server decrypted
  Result<void> result;
  std::size_t piece = 0;

  explicit Pair(std::string alpn = k_alpn_both) : client(std::move(alpn)) {}

  void start(Protocols protocols = k_both, SSL_SESSION* resume = nullptr) {
    if (!context) context = certified.make();
    server = std::make_unique<Tls>(*context, protocols);
    client.start(resume);
    run();
  }
  void give_server(std::string_view cipher) {
    std::vector<char> buffer(cipher.size() + 17'000);
    Outbox out;
    auto size = server->open(cipher, buffer, out);
    if (size) plain.append(buffer.data(), *size);
    else if (result) result = std::unexpected{size.error()};
    if (const std::string answer = take(out); !answer.empty()) client.feed(answer);
  }
  // Until neither has anything to say.
  void run() {
    for (std::string bytes = client.out(); !bytes.empty() && result; bytes = client.out()) {
      const std::size_t step = piece == 0 ? bytes.size() : piece;
      for (std::size_t at = 0; at < bytes.size() && result; at += step)
        give_server(std::string_view{bytes}.substr(at, step));
    }
  }
  void send(std::string_view text) {
    Outbox box, sealed;
    box.append(text);
    ASSERT_TRUE(server->seal(box, sealed));
    client.feed(take(sealed));
  }
};

TEST(Tls, HandshakeAndOctetsBothWaysWhateverTheCuts) {
  for (std::size_t piece : {0, 1, 2, 3, 5, 7, 64, 1000}) {
    Pair pair;
    pair.piece = piece;
    pair.start();
    ASSERT_TRUE(pair.result) << pair.result.error().what;
    ASSERT_TRUE(pair.server->established() && pair.client.established()) << piece;
    pair.client.write("hello ");
    pair.client.write("server");
    pair.run();
    EXPECT_EQ(pair.plain, "hello server");
    pair.send("hello client");
    EXPECT_EQ(pair.client.plain, "hello client");
  }
}

TEST(Tls, EveryCutOfOneRecordGivesTheSame) {
  constexpr std::size_t size = 10 + 22;  // RFC 8446 5.2: header, type, tag
  for (std::size_t at = 1; at < size; ++at) {
    Pair pair;
    pair.start();
    pair.client.write("0123456789");
    const std::string bytes = pair.client.out();
    ASSERT_EQ(bytes.size(), size);
    pair.give_server(std::string_view{bytes}.substr(0, at));
    EXPECT_TRUE(pair.plain.empty());
    pair.give_server(std::string_view{bytes}.substr(at));
    EXPECT_EQ(pair.plain, "0123456789") << at;
  }
}

TEST(Tls, OctetsThatFollowTheHandshakeInOnePieceArrive) {
  Pair pair;
  pair.context = pair.certified.make();
  pair.server = std::make_unique<Tls>(*pair.context, k_both);
  pair.client.start();
  pair.give_server(pair.client.out());
  ASSERT_TRUE(pair.client.established());
  pair.client.write("early bird");
  pair.give_server(pair.client.out());  // Finished and data together
  EXPECT_TRUE(pair.server->established());
  EXPECT_EQ(pair.plain, "early bird");
}

TEST(Tls, AlpnFollowsOurOrderAndTheListener) {
  struct Row {
    std::string offer;
    Protocols spoken;
    std::optional<Protocol> chosen;
  };
  const std::string turned = "\x08http/1.1\x02h2", foreign_first = "\x06spdy/3\x02h2";
  const std::vector<Row> rows{
      {k_alpn_both, k_both, Protocol::http2},    {turned, k_both, Protocol::http2},
      {foreign_first, k_both, Protocol::http2},  {k_alpn_both, {.http1 = true, .http2 = false}, Protocol::http1},
      {"\x08http/1.1", k_both, Protocol::http1}, {"", k_both, std::nullopt}};
  for (const Row& row : rows) {
    Pair pair{row.offer};
    pair.start(row.spoken);
    ASSERT_TRUE(pair.server->established()) << row.offer;
    EXPECT_EQ(pair.server->alpn(), row.chosen) << row.offer;
    const std::string name = !row.chosen ? "" : *row.chosen == Protocol::http2 ? "h2" : "http/1.1";
    EXPECT_EQ(pair.client.chosen(), name);
  }
}

TEST(Tls, AlpnWithoutOverlapIsRefusedByName) {
  Pair pair{"\x06spdy/3"};
  pair.start();
  EXPECT_FALSE(pair.result);
  EXPECT_EQ(pair.client.alert, SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL);
}

// RFC 9113 9.2.2
TEST(Tls, Http2IsNotChosenOverACipherWithoutAead) {
  Pair pair;
  pair.certified.options.ciphers = "ECDHE-ECDSA-AES128-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256";
  SSL_CTX_set_max_proto_version(pair.client.context(), TLS1_2_VERSION);
  pair.start();
  ASSERT_TRUE(pair.server->established());
  EXPECT_EQ(pair.server->alpn(), Protocol::http1);
}

TEST(Tls, OldVersionsAreRefusedByName) {
  Pair pair;
  SSL_CTX_set_security_level(pair.client.context(), 0);
  SSL_CTX_set_min_proto_version(pair.client.context(), TLS1_VERSION);
  SSL_CTX_set_max_proto_version(pair.client.context(), TLS1_1_VERSION);
  pair.start();
  EXPECT_FALSE(pair.result);
  EXPECT_EQ(pair.client.alert, SSL_R_TLSV1_ALERT_PROTOCOL_VERSION);
}

TEST(Tls, MinimumVersionIsKept) {
  Pair pair;
  pair.certified.options.min_version = "TLSv1.3";
  SSL_CTX_set_max_proto_version(pair.client.context(), TLS1_2_VERSION);
  pair.start();
  EXPECT_FALSE(pair.result);
}

TEST(Tls, SessionsResumeInBothVersions) {
  for (int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    Pair pair;
    SSL_CTX_set_max_proto_version(pair.client.context(), version);
    pair.start();
    ASSERT_TRUE(pair.server->established());
    ASSERT_TRUE(pair.client.ticket) << version;
    const auto ticket = pair.client.leave();
    pair.start(k_both, ticket.get());
    ASSERT_TRUE(pair.server->established());
    EXPECT_EQ(SSL_session_reused(pair.client.ssl()), 1) << version;
    EXPECT_EQ(pair.server->alpn(), Protocol::http2);
  }
}

TEST(Tls, SessionsResumeWithClientCertificates) {
  Pair pair;
  const Identity client{"client"};
  pair.certified.options.verify_mode = 2;
  pair.certified.options.ca_certs = pair.certified.folder.write("ca.pem", client.certificate_pem());
  SSL_CTX_use_certificate(pair.client.context(), client.certificate.get());
  SSL_CTX_use_PrivateKey(pair.client.context(), client.key.get());
  pair.start();
  ASSERT_TRUE(pair.server->established() && pair.client.ticket);
  const auto ticket = pair.client.leave();
  pair.start(k_both, ticket.get());
  EXPECT_EQ(SSL_session_reused(pair.client.ssl()), 1);
  EXPECT_EQ(pair.server->facts().client_name, "CN=client,O=tricorn\\, tests");
}

TEST(Tls, RenegotiationIsRefused) {
  Pair pair;
  SSL_CTX_set_max_proto_version(pair.client.context(), TLS1_2_VERSION);
  pair.start();
  ASSERT_TRUE(pair.server->established());
  SSL_renegotiate(pair.client.ssl());
  SSL_do_handshake(pair.client.ssl());
  pair.run();
  EXPECT_EQ(pair.client.alert, SSL_R_NO_RENEGOTIATION);
}

TEST(Tls, FactsNameVersionCipherAndCertificates) {
  Pair pair;
  pair.start();
  const TlsFacts& facts = pair.server->facts();
  EXPECT_EQ(facts.version, 0x0304);
  EXPECT_GE(facts.cipher_suite, 0x1301);
  EXPECT_LE(facts.cipher_suite, 0x1305);
  EXPECT_EQ(facts.server_cert, pair.certified.identity.certificate_pem());
  EXPECT_TRUE(facts.client_chain.empty() && facts.client_name.empty() && facts.client_error.empty());
}

TEST(Tls, ClientCertificateIsShown) {
  Pair pair;
  const Identity client{"J\xc3\xbcrgen"};
  pair.certified.options.verify_mode = 1;
  pair.certified.options.ca_certs = pair.certified.folder.write("ca.pem", client.certificate_pem());
  SSL_CTX_use_certificate(pair.client.context(), client.certificate.get());
  SSL_CTX_use_PrivateKey(pair.client.context(), client.key.get());
  pair.start();
  ASSERT_TRUE(pair.server->established()) << pair.result.error().what;
  const TlsFacts& facts = pair.server->facts();
  ASSERT_EQ(facts.client_chain.size(), 1u);
  EXPECT_EQ(facts.client_chain[0], client.certificate_pem());
  EXPECT_EQ(facts.client_name, "CN=J\xc3\xbcrgen,O=tricorn\\, tests");
  EXPECT_EQ(facts.client_error, "");
}

TEST(Tls, ClientCertificateIsRequiredOrTrusted) {
  struct Row {
    int mode;
    bool shown, trusted, good;
  };
  const std::vector<Row> rows{{0, true, false, true},   {1, false, false, true}, {1, true, false, false},
                              {2, false, false, false}, {2, true, false, false}, {2, true, true, true}};
  for (const Row& row : rows) {
    Pair pair;
    const Identity client{"client"}, other{"other"};
    pair.certified.options.verify_mode = row.mode;
    const auto& trusted = row.trusted ? client : other;
    pair.certified.options.ca_certs = pair.certified.folder.write("ca.pem", trusted.certificate_pem());
    if (row.shown) {
      SSL_CTX_use_certificate(pair.client.context(), client.certificate.get());
      SSL_CTX_use_PrivateKey(pair.client.context(), client.key.get());
    }
    pair.start();
    EXPECT_EQ(pair.server->established(), row.good) << row.mode << row.shown << row.trusted;
    EXPECT_EQ(pair.result.has_value(), row.good);
  }
}

TEST(Tls, PlainHttpAndGarbageAreToldApart) {
  for (std::string_view line : {"GET /", "POST /a", "CONNECT a:1"}) {
    const std::string text = std::string{line} + " HTTP/1.1\r\n\r\n";
    Pair pair;
    pair.context = pair.certified.make();
    pair.server = std::make_unique<Tls>(*pair.context, k_both);
    pair.client.start();
    pair.give_server(text);
    EXPECT_FALSE(pair.result);
    EXPECT_TRUE(pair.server->plain_http()) << text;
  }
  for (const std::string& text : {std::string(8, '\0'), std::string("\x16\x03\x01\xff\xff\x00", 6),
                                  std::string("\x15\x03\x03\x00\x02\x02\x28", 7), std::string("SSH-2.0-x\r\n")}) {
    Pair pair;
    pair.context = pair.certified.make();
    pair.server = std::make_unique<Tls>(*pair.context, k_both);
    pair.client.start();
    pair.give_server(text);
    EXPECT_FALSE(pair.result);
    EXPECT_FALSE(pair.server->plain_http());
  }
}

TEST(Tls, ADamagedRecordIsAnErrorAndEarlierOnesCount) {
  Pair pair;
  pair.start();
  pair.client.write("good");
  std::string bytes = pair.client.out();
  pair.client.write("bad");
  std::string damaged = pair.client.out();
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  pair.give_server(bytes);
  EXPECT_EQ(pair.plain, "good");
  pair.give_server(damaged);
  EXPECT_FALSE(pair.result);
}

TEST(Tls, CloseNotifyGoesBothWays) {
  Pair pair;
  pair.start();
  pair.client.write("last");
  pair.client.close();
  pair.run();
  EXPECT_EQ(pair.plain, "last");
  EXPECT_TRUE(pair.server->ended());
  pair.send("still answered");
  Outbox out;
  pair.server->close_notify(out);
  pair.client.feed(take(out));
  EXPECT_EQ(pair.client.plain, "still answered");
  EXPECT_TRUE(pair.client.ended);
}

TEST(Tls, NothingIsSaidBeforeTheHandshake) {
  Pair pair;
  pair.context = pair.certified.make();
  Tls server{*pair.context, k_both};
  Outbox out;
  server.close_notify(out);
  EXPECT_TRUE(out.empty());
}

TEST(Tls, SealsManySmallPiecesIntoFewRecords) {
  Pair pair;
  pair.start();
  Outbox box, sealed;
  struct Owner : Block {
    std::string bytes = std::string(5000, 'b');
  };
  const auto owner = make_ref<Owner>();
  std::string expected;
  for (int i = 0; i < 20; ++i) {
    box.append("head");
    box.borrow(owner->bytes, Ref<Block>{owner.get()});
    expected += "head" + owner->bytes;
  }
  ASSERT_TRUE(pair.server->seal(box, sealed));
  EXPECT_TRUE(box.empty());
  EXPECT_LT(sealed.size(), expected.size() + 10 * 30);
  pair.client.feed(take(sealed));
  EXPECT_EQ(pair.client.plain, expected);
}

TEST(Tls, SealsAFileAndNoticesWhenItIsShort) {
  Pair pair;
  pair.start();
  const std::string content(100'000, 'f');
  const std::string path = pair.certified.folder.write("file", content);
  const auto file = make_ref<File>(::open(path.c_str(), O_RDONLY), content.size());
  Outbox box, sealed;
  box.append("head ");
  box.append_file(Ref<File>{file.get()}, 0, content.size());
  ASSERT_TRUE(pair.server->seal(box, sealed));
  pair.client.feed(take(sealed));
  EXPECT_EQ(pair.client.plain, "head " + content);
  box.append_file(Ref<File>{file.get()}, 0, content.size() + 1);
  EXPECT_FALSE(pair.server->seal(box, sealed));
}

TEST(Tls, AHugeClientChainIsRefused) {
  Pair pair;
  const Identity client{"client"};
  pair.certified.options.verify_mode = 1;
  pair.certified.options.ca_certs = pair.certified.folder.write("ca.pem", client.certificate_pem());
  SSL_CTX_use_certificate(pair.client.context(), client.certificate.get());
  SSL_CTX_use_PrivateKey(pair.client.context(), client.key.get());
  const Identity filler{std::string(60, 'x')};
  for (int i = 0; i < 150; ++i) SSL_CTX_add1_chain_cert(pair.client.context(), filler.certificate.get());
  pair.start();
  EXPECT_FALSE(pair.server->established());
  EXPECT_FALSE(pair.result);
}

// --- TlsContext ---

TEST(TlsContext, TakesCertificateAndKeyFromOneFile) {
  Certified certified;
  certified.options.certfile =
      certified.folder.write("both.pem", certified.identity.certificate_pem() + certified.identity.key_pem());
  certified.options.keyfile = "";
  EXPECT_TRUE(TlsContext::make(certified.options));
}

TEST(TlsContext, TakesAnEncryptedKey) {
  Certified certified;
  certified.options.keyfile = certified.folder.write("locked.key", certified.identity.key_pem("open sesame"));
  certified.options.keyfile_password = "open sesame";
  EXPECT_TRUE(TlsContext::make(certified.options));
}

TEST(TlsContext, SendsTheWholeChain) {
  Pair pair;
  const Identity middle{"middle"};
  pair.certified.options.certfile =
      pair.certified.folder.write("chain.pem", pair.certified.identity.certificate_pem() + middle.certificate_pem());
  pair.start();
  EXPECT_EQ(sk_X509_num(SSL_get_peer_cert_chain(pair.client.ssl())), 2);
}

TEST(TlsContext, SaysWhichFileIsWrongAndWhy) {
  const Certified good;
  const Folder& folder = good.folder;
  const Identity other{"other"};
  const std::string text = folder.write("text", "hello\n"), empty = folder.write("empty", "");
  const std::string missing = folder.path("missing"), locked = folder.write("locked", good.identity.key_pem("secret"));
  const std::string other_key = folder.write("other.key", other.key_pem());
  const std::string certificate = good.identity.certificate_pem();
  const std::string broken =
      folder.write("broken", certificate + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
  struct Row {
    std::function<void(TlsOptions&)> change;
    std::string what;
  };
  const std::vector<Row> rows{
      {[&](auto& o) { o.certfile = missing; }, missing + ": No such file or directory"},
      {[&](auto& o) { o.certfile = folder.path(""); }, folder.path("") + ": Is a directory"},
      {[&](auto& o) { o.certfile = text; }, text + ": has no certificate in PEM format"},
      {[&](auto& o) { o.certfile = empty; }, empty + ": has no certificate in PEM format"},
      {[&](auto& o) { o.certfile = broken; }, broken + ": a certificate in the chain is damaged"},
      {[&](auto& o) { o.keyfile = missing; }, missing + ": No such file or directory"},
      {[&](auto& o) { o.keyfile = text; }, text + ": has no private key in PEM format"},
      {[&](auto& o) { o.keyfile = locked; }, locked + ": the private key needs a password"},
      {[&](auto& o) {
         o.keyfile = locked;
         o.keyfile_password = "wrong";
       },
       locked + ": the password is wrong"},
      {[&](auto& o) { o.keyfile = other_key; },
       other_key + ": the private key does not belong to the certificate in " + good.options.certfile},
      {[&](auto& o) { o.ca_certs = missing; }, missing + ": No such file or directory"},
      {[&](auto& o) { o.ca_certs = text; }, text + ": has no certificate in PEM format"},
      {[&](auto& o) { o.ciphers = "NOPE"; }, "NOPE: no such cipher is known to OpenSSL"},
      {[&](auto& o) { o.min_version = "SSLv3"; }, "SSLv3: not a TLS version: TLSv1.2 or TLSv1.3"},
      {[&](auto& o) { o.alpn = {"h3"}; }, "h3: no such ALPN protocol here: h2 or http/1.1"},
      {[&](auto& o) { o.verify_mode = 3; }, "verify mode: must be 0, 1 or 2"},
  };
  for (const Row& row : rows) {
    TlsOptions options = good.options;
    row.change(options);
    const auto made = TlsContext::make(options);
    ASSERT_FALSE(made) << row.what;
    EXPECT_EQ(made.error().what, row.what);
    EXPECT_EQ(ERR_peek_error(), 0u) << row.what;
  }
}

}  // namespace
}  // namespace tricorn::testing
