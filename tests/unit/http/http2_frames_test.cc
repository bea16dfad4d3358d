#include "http/http2_frames.h"

#include <gtest/gtest.h>

#include "http2_client.h"

namespace tricorn {
namespace {

using namespace testing;

std::vector<Frame> scan(const Cut& cut) {
  FrameScanner scanner;
  std::vector<Frame> frames;
  for (std::string_view piece : cut) {
    scanner.restart();
    for (std::size_t at = 0; at < piece.size();)
      if (scanner.next(piece, at)) frames.push_back(scanner.frame());
  }
  return frames;
}

TEST(Http2Frames, FindsEveryHeadWhateverTheCuts) {
  const std::string bytes = std::string{k_preface} + settings({{3, 7}, {4, 65'535}}) + data(5, "hello", k_end_stream) +
                            frame(static_cast<FrameType>(0x77), 255, 0x80000001, "x") + ping();
  for (const Cut& cut : every_cut(bytes)) {
    const auto frames = scan(cut);
    ASSERT_EQ(frames.size(), 4u);
    EXPECT_EQ(frames[0].type, FrameType::settings);
    EXPECT_EQ(frames[1].stream, 5u);
    EXPECT_EQ(frames[1].length, 5u);
    EXPECT_TRUE(frames[1].has(FrameFlag::end_stream));
    EXPECT_EQ(frames[2].stream, 1u);  // the reserved bit is no part of it
    EXPECT_EQ(static_cast<int>(frames[2].type), 0x77);
    EXPECT_EQ(frames[3].type, FrameType::ping);
  }
}

TEST(Http2Frames, TellsWhereAFrameStarts) {
  FrameScanner scanner;
  const std::string bytes = std::string{k_preface} + data(1, "abc") + ping();
  std::vector<std::size_t> starts;
  for (std::size_t at = 0; at < bytes.size();)
    if (scanner.next(bytes, at)) starts.push_back(scanner.start());
  EXPECT_EQ(starts, (std::vector<std::size_t>{24, 24 + 12}));
}

TEST(Http2Frames, ReadsWhatAVerdictNeeds) {
  Frame seen;
  const auto scan_one = [&](const std::string& bytes) {
    FrameScanner scanner;
    const std::string all = std::string{k_preface} + bytes;
    for (std::size_t at = 0; at < all.size();)
      if (scanner.next(all, at)) {
        seen = scanner.frame();
        return std::pair{seen.dependency(), seen.initial_window()};
      }
    return std::pair{0u, std::int64_t{-2}};
  };
  EXPECT_EQ(scan_one(frame(FrameType::priority, 0, 3, number(0x80000003, 4) + "\x10")).first, 3u);
  EXPECT_EQ(scan_one(frame(FrameType::headers, k_priority, 3, number(9, 4) + "\x10...")).first, 9u);
  EXPECT_EQ(scan_one(frame(FrameType::headers, k_priority | k_padded, 3, '\1' + number(9, 4) + "\x10...")).first, 9u);
  EXPECT_EQ(scan_one(frame(FrameType::headers, 0, 3, "....")).first, 0u);
  EXPECT_EQ(scan_one(settings({{4, 1}, {1, 2}, {4, 0xffffffff}})).second, 0xffffffff);
  EXPECT_EQ(scan_one(settings({{1, 2}})).second, -1);
}

TEST(Http2Frames, KnowsAnOpenHeaderBlock) {
  FrameScanner scanner;
  const auto feed = [&](std::string_view bytes) {
    scanner.restart();
    for (std::size_t at = 0; at < bytes.size();) scanner.next(bytes, at);
    return scanner.in_header_block();
  };
  EXPECT_FALSE(feed(k_preface));
  EXPECT_TRUE(feed(frame(FrameType::headers, 0, 1, "abc")));
  EXPECT_TRUE(feed(frame(FrameType::continuation, 0, 1, "abc")));
  const std::string last = frame(FrameType::continuation, k_end_headers, 1, "abc");
  EXPECT_TRUE(feed(last.substr(0, 11)));
  EXPECT_FALSE(feed(last.substr(11)));
}

}  // namespace
}  // namespace tricorn
