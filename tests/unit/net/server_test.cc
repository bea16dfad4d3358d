#include "net/server.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <stdexcept>

#include "net/rig.h"

namespace tricorn::testing {
namespace {

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](timeval t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6; };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

TEST(Server, AnswersRequestsOnOneConnection) {
  Rig rig;
  Client client = rig.connect();
  client.send(post("one"));
  ASSERT_TRUE(rig.until([&] { return client.has("one"); }));
  client.send(post("two"));
  ASSERT_TRUE(rig.until([&] { return client.has("two"); }));
  EXPECT_EQ(rig.server->connections(), 1u);
  EXPECT_EQ(rig.server->host().total_requests, 2u);
}

TEST(Server, AnswersPipelinedRequestsInOrder) {
  Rig rig;
  Client client = rig.connect();
  std::string requests;
  for (int i = 0; i < 100; ++i) requests += post("<" + std::to_string(i) + ">");
  client.send(requests);
  ASSERT_TRUE(rig.until([&] { return client.has("<99>"); }));
  std::size_t at = 0;
  for (int i = 0; i < 100; ++i) {
    at = client.in.find("<" + std::to_string(i) + ">", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
}

TEST(Server, AnExceptionOutOfAnAppCostsNoOtherRequest) {
  Rig rig;
  bool thrown = false;
  rig.app.answer = [&](Seen& seen, Events) {
    if (!std::exchange(thrown, true)) throw std::runtime_error{"against the contract"};
    LambdaApp::echo(seen);
  };
  std::vector<Client> clients;
  for (int i = 0; i < 10; ++i) clients.push_back(rig.connect());
  for (Client& client : clients) client.send(get());
  rig.loop->poll(0.1);
  while (!thrown) {
    try {
      rig.turn(0.01);
    } catch (const std::runtime_error&) {
    }
  }
  const auto answered = [&] {
    std::size_t n = 0;
    for (Client& client : clients) n += client.has("200 OK");
    return n;
  };
  EXPECT_TRUE(rig.until([&] { return answered() == 9; }, 1)) << answered();
}

TEST(Server, ServesManyConnectionsAtOnce) {
  Rig rig;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 100; ++i) {
    clients.push_back(std::make_unique<Client>(rig.listener));
    clients.back()->send(post(std::to_string(i) + "."));
  }
  EXPECT_TRUE(rig.until([&] {
    for (int i = 0; i < 100; ++i)
      if (!clients[static_cast<std::size_t>(i)]->has(std::to_string(i) + ".")) return false;
    return true;
  }));
  EXPECT_EQ(rig.server->connections(), 100u);
  clients.clear();
  EXPECT_TRUE(rig.until([&] { return rig.server->connections() == 0; }));
}

TEST(Server, NamesBothEndsOfATcpConnection) {
  Rig rig;
  Client client = rig.connect();
  Peer peer;
  rig.app.answer = [&](Seen& seen, Events) {
    peer = seen.exchange->peer();
    LambdaApp::echo(seen);
  };
  client.send(get());
  ASSERT_TRUE(rig.until([&] { return client.has("200"); }));
  sockaddr_in mine{}, theirs{};
  socklen_t size = sizeof mine;
  ::getsockname(client.fd, reinterpret_cast<sockaddr*>(&mine), &size);
  ::getpeername(client.fd, reinterpret_cast<sockaddr*>(&theirs), &size);
  EXPECT_EQ(peer.client_host, "127.0.0.1");
  EXPECT_EQ(peer.client_port, ntohs(mine.sin_port));
  EXPECT_EQ(peer.server_host, "127.0.0.1");
  EXPECT_EQ(peer.server_port, ntohs(theirs.sin_port));
  EXPECT_FALSE(peer.secure);
}

TEST(Server, NamesBothEndsOfAnIpv6Connection) {
  Rig rig;
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const Fd listener{::socket(AF_INET6, SOCK_STREAM, 0)};
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) GTEST_SKIP() << "no IPv6 here";
  ::listen(listener, 8);
  ASSERT_TRUE(rig.server->listen(listener));
  Peer peer;
  rig.app.answer = [&](Seen& seen, Events) {
    if (!seen.gone) peer = seen.exchange->peer();
  };
  Client client{listener};
  client.send(get());
  ASSERT_TRUE(rig.until([&] { return !rig.app.calls.empty(); }));
  EXPECT_EQ(peer.client_host, "::1");
  EXPECT_EQ(peer.server_host, "::1");
  EXPECT_GT(peer.client_port, 0);
}

TEST(Server, NamesAUnixSocketByItsPath) {
  const Folder folder;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder.path("socket");
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  Rig rig;
  const Fd listener = listening(address);
  ASSERT_TRUE(rig.server->listen(listener));
  Peer peer;
  rig.app.answer = [&](Seen& seen, Events) {
    if (!seen.gone) peer = seen.exchange->peer();
  };
  Client client{listener};
  client.send(get());
  ASSERT_TRUE(rig.until([&] { return !rig.app.calls.empty(); }));
  EXPECT_EQ(peer.client_host, "");
  EXPECT_EQ(peer.server_host, path);
  EXPECT_EQ(peer.server_port, -1);
}

TEST(Server, ListensOnSeveralSocketsAndRefusesNonsense) {
  Rig rig;
  const Fd second = listening(loopback());
  ASSERT_TRUE(rig.server->listen(second, {.http1 = true, .http2 = false}));
  EXPECT_FALSE(rig.server->listen(second));
  EXPECT_FALSE(rig.server->listen(-1));
  Client client{second};
  client.send(post("second"));
  EXPECT_TRUE(rig.until([&] { return client.has("second"); }));
}

TEST(Server, StopListeningLeavesConnectionsAlone) {
  Rig rig;
  Client client = rig.connect();
  client.send(post("one"));
  ASSERT_TRUE(rig.until([&] { return client.has("one"); }));
  rig.server->stop_listening();
  Client late = rig.connect();  // the kernel's queue takes it, nobody else does
  client.send(post("two"));
  EXPECT_TRUE(rig.until([&] { return client.has("two"); }));
  EXPECT_EQ(rig.server->connections(), 1u);
}

// --- stopping ---

TEST(Server, DrainEndsIdleConnectionsAtOnce) {
  Rig rig;
  Client fresh = rig.connect(), used = rig.connect();
  used.send(get());
  ASSERT_TRUE(rig.until([&] { return used.has("200") && rig.server->connections() == 2; }));
  int drained = 0;
  rig.server->on_drained([&] { ++drained; });
  rig.server->stop_listening();
  rig.server->drain();
  rig.server->drain();
  EXPECT_TRUE(rig.until([&] { return fresh.done() && used.done() && drained > 0; }, 1));
  rig.for_a_while(0.02);
  EXPECT_EQ(drained, 1);
  EXPECT_FALSE(rig.loop->ready());
}

TEST(Server, DrainLetsARequestFinish) {
  Rig rig;
  rig.app.answer = nullptr;
  Client client = rig.connect();
  client.send(get());
  ASSERT_TRUE(rig.until([&] { return !rig.app.calls.empty(); }));
  bool drained = false;
  rig.server->on_drained([&] { drained = true; });
  rig.server->stop_listening();
  rig.server->drain();
  rig.for_a_while(0.05);
  EXPECT_FALSE(drained);
  EXPECT_FALSE(client.done());
  LambdaApp::reply(rig.call(), 200, "finished");
  EXPECT_TRUE(rig.until([&] { return client.done() && drained; }, 1));
  EXPECT_TRUE(client.in.ends_with("finished"));
  EXPECT_FALSE(client.reset);
}

TEST(Server, DrainWithNothingThereIsReadyAtOnce) {
  Rig rig;
  bool drained = false;
  rig.server->on_drained([&] { drained = true; });
  rig.server->drain();
  EXPECT_TRUE(rig.loop->ready());
  EXPECT_EQ(rig.loop->next_timeout(), 0.0);
  rig.turn(0.0);
  EXPECT_TRUE(drained);
}

TEST(Server, CloseTellsRequestsInFlight) {
  Rig rig;
  rig.app.answer = nullptr;
  Client client = rig.connect();
  client.send(get());
  ASSERT_TRUE(rig.until([&] { return !rig.app.calls.empty(); }));
  rig.server->close();
  rig.server->close();
  EXPECT_EQ(rig.server->connections(), 0u);
  EXPECT_TRUE(rig.call().exchange->gone());
  EXPECT_TRUE(rig.loop->ready());
  rig.loop->dispatch();
  EXPECT_TRUE(rig.call().gone);
  EXPECT_TRUE(rig.until([&] { return client.done(); }));
  EXPECT_FALSE(rig.server->listen(rig.listener));
}

TEST(Server, MayBeDestroyedWithConnectionsOpenAndTheLoopGoesOn) {
  Rig rig;
  Rig* other = new Rig;
  Client first = rig.connect();
  {
    LambdaApp app;
    const Fd listener = listening(loopback());
    Server server{*rig.loop, app};
    ASSERT_TRUE(server.listen(listener));
    Client client{listener}, second{listener};
    client.send(get());
    ASSERT_TRUE(rig.until([&] { return client.has("200") && server.connections() == 2; }));
    for (auto& call : app.calls) call->exchange.reset();
  }
  delete other;
  first.send(post("goes on"));
  EXPECT_TRUE(rig.until([&] { return first.has("goes on"); }));
}

TEST(Server, ClosingTheLoopClosesItsServers) {
  Rig rig;
  Client client = rig.connect();
  ASSERT_TRUE(rig.until([&] { return rig.server->connections() == 1; }));
  rig.loop->close();
  EXPECT_EQ(rig.server->connections(), 0u);
  EXPECT_TRUE(client.done());
}

// --- a host loop ---

TEST(Server, OutputOutsideATurnCallsTheHookOnce) {
  Rig rig;
  rig.app.answer = nullptr;
  Client client = rig.connect();
  client.send(get());
  ASSERT_TRUE(rig.until([&] { return !rig.app.calls.empty(); }));
  rig.turn(0.0);
  int told = 0;
  rig.loop->on_dirty([&] { ++told; });
  rig.loop->touched();
  EXPECT_EQ(told, 0);
  LambdaApp::reply(rig.call(), 200, "late");
  rig.loop->touched();
  rig.loop->touched();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(rig.loop->next_timeout(), 0.0);
  rig.loop->flush();
  EXPECT_TRUE(client.has("late"));
  rig.loop->touched();
  EXPECT_EQ(told, 1);
}

TEST(Server, AHostLoopNeedsOnlyTheBackendDescriptorAndTheTimeout) {
  Rig rig;
  Client client = rig.connect();
  client.send(post("hosted"));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{5};
  while (!client.has("hosted") && std::chrono::steady_clock::now() < end) {
    pollfd backend{.fd = rig.loop->backend_fd(), .events = POLLIN, .revents = 0};
    const auto wait = rig.loop->next_timeout();
    ::poll(&backend, 1, wait ? static_cast<int>(*wait * 1000) : 1000);
    rig.loop->flush();
    rig.turn(0.0);
    rig.loop->flush();
  }
  EXPECT_TRUE(client.has("hosted"));
}

TEST(Server, AnIdleServerSleeps) {
  Rig rig;
  Client client = rig.connect();
  client.send(get());
  ASSERT_TRUE(rig.until([&] { return client.has("200"); }));
  const double before = cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  int turns = 0;
  while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds{600}) {
    rig.turn(1.0);
    ++turns;
  }
  EXPECT_LT(turns, 8);
  EXPECT_LT(cpu_seconds() - before, 0.05);
}

// --- limits ---

TEST(Server, AtTheLimitTheOldestIdleConnectionMakesRoom) {
  Limits limits;
  limits.connections = 3;
  Rig rig{limits};
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<Client>(rig.listener));
    clients.back()->send(get());
    ASSERT_TRUE(rig.until([&] { return clients.back()->has("200"); }));
  }
  rig.for_a_while(0.02);
  EXPECT_EQ(rig.server->connections(), 3u);  // nobody waits: nobody is shed
  clients[0]->send(post("again"));           // now the second is the oldest
  ASSERT_TRUE(rig.until([&] { return clients[0]->has("again"); }));
  Client next = rig.connect();
  next.send(post("room"));
  EXPECT_TRUE(rig.until([&] { return next.has("room") && clients[1]->done(); }));
  EXPECT_FALSE(clients[0]->done() || clients[2]->done());
  EXPECT_EQ(rig.server->connections(), 3u);
}

TEST(Server, AtTheLimitWithAllBusyAcceptingPausesUntilOneCloses) {
  Limits limits;
  limits.connections = 2;
  Rig rig{limits};
  rig.app.answer = [](Seen& seen, Events) {
    if (seen.target != "/slow") LambdaApp::echo(seen);
  };
  Client first = rig.connect(), second = rig.connect();
  first.send(get("/slow"));
  second.send(get("/slow"));
  ASSERT_TRUE(rig.until([&] { return rig.app.calls.size() == 2; }));
  Client third = rig.connect();
  third.send(get());
  const double before = cpu_seconds();
  for (int i = 0; i < 10; ++i) rig.turn(0.03);
  EXPECT_LT(cpu_seconds() - before, 0.05);
  EXPECT_FALSE(third.has("200"));
  LambdaApp::reply(rig.call(0), 200, "done");
  EXPECT_TRUE(rig.until([&] { return third.has("200"); }));
  second.abort();
  EXPECT_TRUE(rig.until([&] { return rig.server->connections() == 1; }));
}

class FewDescriptors {
 public:
  explicit FewDescriptors(int more) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const Fd next{::dup(0)};
    const rlimit now{.rlim_cur = static_cast<rlim_t>(next + more), .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &now);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_;
};

TEST(Server, OutOfDescriptorsItShedsIdleOnesThenPausesAndRecovers) {
  Rig rig;
  rig.app.answer = [](Seen& seen, Events) {
    if (seen.target != "/slow") LambdaApp::echo(seen);
  };
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(std::make_unique<Client>(rig.listener));
  for (auto& client : clients) client->send(get("/slow"));
  {
    const FewDescriptors few{4};
    EXPECT_TRUE(rig.until([&] { return rig.app.calls.size() == 4; }));
    const double before = cpu_seconds();
    for (int i = 0; i < 10; ++i) rig.turn(0.05);
    EXPECT_LT(cpu_seconds() - before, 0.05);
    EXPECT_EQ(rig.app.calls.size(), 4u);
    ASSERT_EQ(rig.notices.size(), 1u);
    EXPECT_EQ(rig.notices[0], "accepting is paused: Too many open files");
    LambdaApp::reply(rig.call(0), 200, "first");  // idle then: it makes room for the next
    EXPECT_TRUE(rig.until([&] { return rig.app.calls.size() == 5; }, 1));
  }
  EXPECT_TRUE(rig.until([&] { return rig.app.calls.size() == 8; }, 1));
}

}  // namespace
}  // namespace tricorn::testing
