#include "net/loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "net/timer.h"

namespace tricorn::testing {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

template <class Body>
double seconds(Body&& body) {
  const auto start = steady_clock::now();
  body();
  return duration<double>(steady_clock::now() - start).count();
}

std::unique_ptr<Loop> make_loop() { return std::move(*Loop::make()); }

struct Pipe {
  int ends[2];
  Pipe() { EXPECT_EQ(::pipe(ends), 0); }
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  void write() const { EXPECT_EQ(::write(ends[1], "x", 1), 1); }
  void read() const {
    char c;
    EXPECT_EQ(::read(ends[0], &c, 1), 1);
  }
};

TEST(Loop, PollWaitsAsLongAsItIsTold) {
  auto loop = make_loop();
  EXPECT_LT(seconds([&] { loop->poll(0.0); }), 0.02);
  EXPECT_LT(seconds([&] { loop->poll(-1.0); }), 0.02);
  const double waited = seconds([&] { EXPECT_FALSE(loop->poll(0.03)); });
  EXPECT_GE(waited, 0.029);
  EXPECT_GE(seconds([&] { loop->poll(0.0001); }), 0.0);
  EXPECT_LT(seconds([&] { loop->poll(0.0); }), 0.02);  // no time-out is left over
}

TEST(Loop, WatchedDescriptorFiresUntilItIsRead) {
  auto loop = make_loop();
  const Pipe pipe;
  ASSERT_TRUE(loop->watch(pipe.ends[0]));
  EXPECT_FALSE(loop->watch(pipe.ends[0]));
  EXPECT_FALSE(loop->poll(0.0));
  pipe.write();
  EXPECT_TRUE(loop->poll(std::nullopt));
  EXPECT_TRUE(loop->poll(1.0));
  EXPECT_TRUE(loop->poll(0.0));
  pipe.read();
  EXPECT_FALSE(loop->poll(0.0));
}

TEST(Loop, WatchingWhatCannotBePolledIsAnError) {
  auto loop = make_loop();
  EXPECT_FALSE(loop->watch(-1));
  const int file = ::open("/proc/self/exe", O_RDONLY);
  EXPECT_FALSE(loop->watch(file));
  ::close(file);
}

TEST(Loop, WakeEndsThePollFromAnotherThread) {
  auto loop = make_loop();
  std::thread other{[&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    loop->wake();
  }};
  EXPECT_LT(seconds([&] { EXPECT_FALSE(loop->poll(std::nullopt)); }), 5.0);
  other.join();
}

TEST(Loop, TimersFireAndShowInNextTimeout) {
  auto loop = make_loop();
  loop->poll(0.0);
  int fired = 0;
  Timer timer{*loop, [&] { ++fired; }};
  EXPECT_EQ(loop->next_timeout(), std::nullopt);
  timer.once(20);
  EXPECT_TRUE(timer.running());
  ASSERT_TRUE(loop->next_timeout());
  EXPECT_LE(*loop->next_timeout(), 0.021);
  while (fired == 0) loop->poll(std::nullopt);
  EXPECT_FALSE(timer.running());
  timer.every(1);
  while (fired < 5) loop->poll(std::nullopt);
  timer.stop();
  EXPECT_EQ(loop->next_timeout(), std::nullopt);
}

TEST(Loop, HostLoopSeesWorkOnTheBackendDescriptor) {
  auto loop = make_loop();
  const Pipe pipe;
  ASSERT_TRUE(loop->watch(pipe.ends[0]));
  EXPECT_EQ(loop->next_timeout(), 0.0);  // not armed yet
  loop->poll(0.0);
  EXPECT_EQ(loop->next_timeout(), std::nullopt);
  pollfd backend{.fd = loop->backend_fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&backend, 1, 0), 0);
  pipe.write();
  EXPECT_EQ(::poll(&backend, 1, 1000), 1);
  EXPECT_TRUE(loop->poll(0.0));
}

TEST(Loop, CloseIsTheEndAndMayComeTwice) {
  auto loop = make_loop();
  const Pipe pipe;
  ASSERT_TRUE(loop->watch(pipe.ends[0]));
  loop->poll(0.0);
  loop->close();
  loop->close();
  EXPECT_FALSE(loop->poll(1.0));
  EXPECT_FALSE(loop->ready());
  EXPECT_EQ(loop->next_timeout(), std::nullopt);
  EXPECT_EQ(loop->backend_fd(), -1);
  loop->dispatch();
  loop->flush();
}

}  // namespace
}  // namespace tricorn::testing
