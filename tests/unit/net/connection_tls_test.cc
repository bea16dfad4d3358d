#include <gtest/gtest.h>

#include "net/rig.h"

namespace tricorn::testing {
namespace {

// A TLS client over a socket.
struct TlsSocket {
  Client client;
  TlsClient tls;

  TlsSocket(const Rig& rig, std::string alpn) : client(rig.connect()), tls(std::move(alpn)) {
    tls.start();
    pump();
  }
  void pump() {
    client.receive();
    if (!client.in.empty()) tls.feed(std::exchange(client.in, {}));
    if (const std::string out = tls.out(); !out.empty() && !client.ended) client.send(out);
  }
  void send(std::string_view text) {
    tls.write(text);
    pump();
  }
  bool has(std::string_view text) {
    pump();
    return tls.plain.find(text) != std::string::npos;
  }
  bool established() {
    pump();
    return tls.established();
  }
};

const std::string k_http1 = "\x08http/1.1";

TEST(Connection, ServesOverTls) {
  const Certified certified;
  const auto context = certified.make();
  Rig rig{{}, {}, context.get()};
  Peer peer;
  int version = 0;
  rig.app.answer = [&](Seen& seen, Events) {
    if (seen.gone) return;
    peer = seen.exchange->peer();
    version = peer.tls ? peer.tls->version : 0;
    LambdaApp::echo(seen);
  };
  for (const std::string& alpn : {k_http1, std::string{}}) {
    TlsSocket socket{rig, alpn};
    ASSERT_TRUE(rig.until([&] { return socket.established(); }));
    socket.send(post("secret"));
    EXPECT_TRUE(rig.until([&] { return socket.has("secret"); }));
    socket.send(post("again"));
    EXPECT_TRUE(rig.until([&] { return socket.has("again"); }));
  }
  EXPECT_TRUE(peer.secure);
  EXPECT_EQ(version, 0x0304);
}

TEST(Connection, AlpnMakesItHttp2) {
  const Certified certified;
  const auto context = certified.make();
  Rig rig{{}, {}, context.get()};
  rig.app.answer = [](Seen& seen, Events) { LambdaApp::reply(seen, 200, "two it is"); };
  TlsSocket socket{rig, "\x02h2\x08http/1.1"};
  ASSERT_TRUE(rig.until([&] { return socket.established(); }));
  std::string request = http2_get();
  request[request.find('\x86')] = '\x87';  // https
  socket.send(request);
  EXPECT_TRUE(rig.until([&] { return socket.has("two it is"); }, 2));
  EXPECT_EQ(socket.tls.chosen(), "h2");
}

TEST(Connection, LargeBodiesGoThroughTlsBothWays) {
  const Certified certified;
  const auto context = certified.make();
  Rig rig{{}, {}, context.get()};
  TlsSocket socket{rig, k_http1};
  ASSERT_TRUE(rig.until([&] { return socket.established(); }));
  const std::string body = big(3'000'000);
  socket.tls.write(post(body));
  const std::string cipher = socket.tls.out();
  std::string_view rest = cipher;
  ASSERT_TRUE(rig.until([&] { return rest.remove_prefix(socket.client.send_some(rest)), rest.empty(); }));
  EXPECT_TRUE(rig.until([&] { return socket.pump(), socket.tls.plain.size() > body.size(); }));
  EXPECT_TRUE(socket.tls.plain.ends_with(body));
}

TEST(Connection, AFileGoesThroughTls) {
  const Certified certified;
  const auto context = certified.make();
  Rig rig{{}, {}, context.get()};
  const std::string content = big(500'000);
  const std::string path = certified.folder.write("file", content);
  rig.app.answer = [&](Seen& seen, Events) { reply_with_file(seen, path, content.size()); };
  TlsSocket socket{rig, k_http1};
  ASSERT_TRUE(rig.until([&] { return socket.established(); }));
  socket.send(get());
  EXPECT_TRUE(rig.until([&] { return socket.pump(), socket.tls.plain.size() > content.size(); }));
  EXPECT_TRUE(socket.tls.plain.ends_with(content));
}

TEST(Connection, TlsEndsWithCloseNotify) {
  const Certified certified;
  const auto context = certified.make();
  Rig rig{{}, {}, context.get()};
  TlsSocket socket{rig, k_http1};
  ASSERT_TRUE(rig.until([&] { return socket.established(); }));
  socket.send("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
  EXPECT_TRUE(rig.until([&] { return socket.pump(), socket.tls.ended && socket.client.ended; }, 1));
}

TEST(Connection, CloseNotifyIsAHalfClose) {
  const Certified certified;
  const auto context = certified.make();
  Rig rig{{}, {}, context.get()};
  rig.app.answer = nullptr;
  TlsSocket socket{rig, k_http1};
  ASSERT_TRUE(rig.until([&] { return socket.established(); }));
  socket.tls.write(get());
  socket.tls.close();
  socket.pump();
  ASSERT_TRUE(rig.until([&] { return !rig.app.calls.empty() && rig.call().input_ended; }, 1));
  LambdaApp::reply(rig.call(), 200, "answered");
  EXPECT_TRUE(rig.until([&] { return socket.has("answered"); }, 1));
}

TEST(Connection, PlainHttpOnATlsPortIsToldSo) {
  const Certified certified;
  const auto context = certified.make();
  Rig rig{{}, {}, context.get()};
  Client client = rig.connect();
  client.send(get());
  EXPECT_TRUE(rig.until([&] { return client.done(); }, 1));
  EXPECT_TRUE(client.in.starts_with("HTTP/1.0 400 ")) << client.in;
  EXPECT_FALSE(client.reset);
}

TEST(Connection, GarbageOnATlsPortIsClosed) {
  const Certified certified;
  const auto context = certified.make();
  Rig rig{{}, {}, context.get()};
  for (std::string_view garbage : {"SSH-2.0-nothing\r\n", "\x16\x03\x01\xff\xff garbage", "\r\n\r\n\r\n"}) {
    Client client = rig.connect();
    client.send(garbage);
    EXPECT_TRUE(rig.until([&] { return client.done(); }, 1)) << garbage;
  }
}

TEST(Connection, AHandshakeThatStallsEnds) {
  const Certified certified;
  const auto context = certified.make();
  Limits limits;
  limits.timeout_tls_handshake = 100;
  Rig rig{limits, {}, context.get()};
  Client silent = rig.connect(), half = rig.connect();
  TlsClient tls;
  tls.start();
  half.send(tls.out());
  EXPECT_TRUE(rig.until([&] { return silent.done() && half.done(); }, 1));
  EXPECT_EQ(rig.server->connections(), 0u);
}

TEST(Connection, AbortedHandshakesLeaveNothingBehind) {
  const Certified certified;
  const auto context = certified.make();
  Rig rig{{}, {}, context.get()};
  for (int i = 0; i < 50; ++i) {
    Client client = rig.connect();
    TlsClient tls;
    tls.start();
    const std::string hello = tls.out();
    client.send(std::string_view{hello}.substr(0, static_cast<std::size_t>(i) * 5));
    if (i % 2 > 0) rig.turn(0.0);
    if (i % 3 > 0) client.abort();
  }
  EXPECT_TRUE(rig.until([&] { return rig.server->connections() == 0; }, 2));
}

}  // namespace
}  // namespace tricorn::testing
