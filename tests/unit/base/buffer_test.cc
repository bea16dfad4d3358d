#include "base/buffer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace tricorn {
namespace {

TEST(Buffer, GivesBackWhatWasAppendedInOrder) {
  Buffer buffer;
  EXPECT_TRUE(buffer.empty());
  buffer.append("abc");
  buffer.append("");
  buffer.append("def");
  EXPECT_EQ(buffer.view(), "abcdef");
  buffer.drain(4);
  EXPECT_EQ(buffer.view(), "ef");
  buffer.append("g");
  EXPECT_EQ(buffer.view(), "efg");
  EXPECT_EQ(buffer.size(), 3u);
}

TEST(Buffer, DrainsAtMostWhatIsThere) {
  Buffer buffer;
  buffer.drain(5);
  buffer.append("abc");
  buffer.drain(5);
  EXPECT_TRUE(buffer.empty());
  buffer.append("d");
  EXPECT_EQ(buffer.view(), "d");
}

TEST(Buffer, TakesWhatAReaderWroteInPlace) {
  Buffer buffer;
  buffer.append("a");
  std::memcpy(buffer.reserve(100), "bcd", 3);
  buffer.commit(3);
  EXPECT_EQ(buffer.view(), "abcd");
}

TEST(Buffer, KeepsItsContentWhateverTheOrderOfAppendsAndDrains) {
  Buffer buffer;
  std::string model;
  unsigned seed = 7;
  for (int i = 0; i < 20'000; ++i) {
    seed = seed * 1'103'515'245 + 12'345;
    const std::size_t n = (seed >> 16) % 97;
    if (seed & 0x8000) {
      const std::string piece(n, static_cast<char>('a' + i % 26));
      buffer.append(piece);
      model += piece;
    } else {
      buffer.drain(n);
      model.erase(0, n);
    }
    ASSERT_EQ(buffer.view(), model) << i;
  }
}

TEST(Buffer, GivesMemoryBackWhenALargeOneRunsEmpty) {
  Buffer buffer;
  buffer.append(std::string(1 << 20, 'x'));
  const char* before = buffer.view().data();
  buffer.clear();
  buffer.append("x");
  EXPECT_NE(buffer.view().data(), before);
}

}  // namespace
}  // namespace tricorn
