#include "http/http2_guard.h"

#include <gtest/gtest.h>

namespace tricorn {
namespace {

Frame made(FrameType type, std::uint32_t stream = 0, std::uint32_t length = 0, std::uint8_t flags = 0) {
  return {.length = length, .type = type, .flags = flags, .stream = stream, .payload = {}};
}

struct Http2GuardTest : ::testing::Test {
  Limits limits;
  std::optional<Http2Guard> made_guard{limits};
  Http2Guard& guard = *made_guard;
  Millis now = 1'000'000;

  // How many of the same frame pass before the verdict; `most` if all do.
  int passes(const Frame& frame, int most, Known known = Known::nothing) {
    for (int i = 0; i < most; ++i)
      if (auto bad = guard.judge(frame, known, now)) {
        EXPECT_EQ(bad->code, Http2Error::enhance_your_calm);
        return i;
      }
    return most;
  }
};

TEST(TokenBucket, RefillsAtItsRateUpToItsBurst) {
  TokenBucket bucket{2, 10};
  EXPECT_TRUE(bucket.take(1000));
  EXPECT_TRUE(bucket.take(1000));
  EXPECT_FALSE(bucket.take(1000));
  EXPECT_FALSE(bucket.take(1099));
  EXPECT_TRUE(bucket.take(1100));
  EXPECT_TRUE(bucket.take(9000));
  EXPECT_TRUE(bucket.take(9000));
  EXPECT_FALSE(bucket.take(9000));
}

TEST(TokenBucket, WithoutABurstNeverEnds) {
  TokenBucket bucket{0, 0};
  for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(bucket.take(1));
}

TEST_F(Http2GuardTest, EndsFramesThatServeNothing) {
  for (Frame frame : {made(FrameType::data, 1), made(static_cast<FrameType>(0x77), 0, 64), made(FrameType::settings),
                      made(FrameType::priority, 3, 5), made(FrameType::goaway)}) {
    made_guard.emplace(limits);
    const int passed = passes(frame, 5'000, Known::open);
    EXPECT_GE(passed, 1'000) << static_cast<int>(frame.type);
    EXPECT_LE(passed, 1'001) << static_cast<int>(frame.type);
  }
}

TEST_F(Http2GuardTest, EndsPingsWithoutTraffic) { EXPECT_EQ(passes(made(FrameType::ping, 0, 8), 5'000), 1'001); }

TEST_F(Http2GuardTest, LetsAPingFollowTraffic) {
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_EQ(passes(made(FrameType::ping, 0, 8), 1), 1);
    if (i % 2 == 0) guard.sent_data();
    else ASSERT_EQ(passes(made(FrameType::data, 1, 5), 1, Known::open), 1);
  }
}

TEST_F(Http2GuardTest, CountsPongsOnlyWhenNotAskedFor) {
  for (int i = 0; i < 3'000; ++i) {
    guard.sent_ping();
    ASSERT_EQ(passes(made(FrameType::ping, 0, 8, 1), 1), 1);
  }
  EXPECT_EQ(passes(made(FrameType::ping, 0, 8, 1), 5'000), 1'000);
}

TEST_F(Http2GuardTest, ExpectsTenWindowUpdatesAFrameSent) {
  for (int i = 0; i < 5'000; ++i) {
    guard.sent_data();
    ASSERT_EQ(passes(made(FrameType::window_update, 1, 4), 10), 10);
  }
  EXPECT_LE(passes(made(FrameType::window_update, 1, 4), 5'000), 1'020);
}

TEST_F(Http2GuardTest, ExpectsAWindowUpdateWithEachRequest) {
  for (std::uint32_t i = 0; i < 200'000; ++i) {
    ASSERT_EQ(passes(made(FrameType::headers, 2 * i + 1, 9, 5), 1), 1);
    ASSERT_EQ(passes(made(FrameType::window_update, 2 * i + 1, 4), 1), 1);
  }
}

TEST_F(Http2GuardTest, CountsResetsThatThrowWorkAway) {
  EXPECT_EQ(passes(made(FrameType::rst_stream, 1, 4), 5'000, Known::answered), 5'000);
  EXPECT_EQ(passes(made(FrameType::rst_stream, 1, 4), 5'000, Known::open), 1'000);
  now += 1'000;
  EXPECT_EQ(passes(made(FrameType::rst_stream, 1, 4), 5'000, Known::open), 100);
}

TEST_F(Http2GuardTest, CountsOurResetsWhenThePeerCausedThem) {
  for (auto code : {Http2Error::no_error, Http2Error::cancel, Http2Error::internal_error})
    for (int i = 0; i < 5'000; ++i) ASSERT_FALSE(guard.judge_reset(code, now));
  for (int i = 0; i < 1'000; ++i) ASSERT_FALSE(guard.judge_reset(Http2Error::protocol_error, now));
  EXPECT_TRUE(guard.judge_reset(Http2Error::protocol_error, now));
}

TEST_F(Http2GuardTest, AllowsEightContinuationsAHead) {
  for (std::uint32_t stream : {1u, 3u}) {
    EXPECT_FALSE(guard.judge(made(FrameType::headers, stream, 3), Known::nothing, now));
    EXPECT_EQ(passes(made(FrameType::continuation, stream, 3), 100), 8);
  }
}

TEST_F(Http2GuardTest, EndsAStreamIdThatWasPassedOver) {
  EXPECT_FALSE(guard.judge(made(FrameType::headers, 1, 3, 5), Known::nothing, now));
  EXPECT_FALSE(guard.judge(made(FrameType::headers, 7, 3, 5), Known::nothing, now));
  EXPECT_EQ(guard.judge(made(FrameType::headers, 5, 3, 5), Known::nothing, now)->code, Http2Error::protocol_error);
  EXPECT_EQ(guard.judge(made(FrameType::data, 3, 3), Known::nothing, now)->code, Http2Error::stream_closed);
}

TEST_F(Http2GuardTest, EndsFramesAfterThePeersOwnEnd) {
  EXPECT_FALSE(guard.judge(made(FrameType::headers, 1, 3, 5), Known::nothing, now));
  guard.ended(1);
  EXPECT_EQ(guard.judge(made(FrameType::data, 1, 3), Known::nothing, now)->code, Http2Error::stream_closed);
  EXPECT_EQ(guard.judge(made(FrameType::headers, 1, 3, 5), Known::nothing, now)->code, Http2Error::stream_closed);
}

TEST_F(Http2GuardTest, IgnoresWhatWasUnderWayToAStreamWeReset) {
  EXPECT_FALSE(guard.judge(made(FrameType::headers, 1, 3), Known::nothing, now));
  EXPECT_FALSE(guard.judge(made(FrameType::data, 1, 3), Known::nothing, now));
  EXPECT_FALSE(guard.judge(made(FrameType::headers, 1, 3, 5), Known::nothing, now));
}

}  // namespace
}  // namespace tricorn
