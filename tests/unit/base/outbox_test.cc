#include "base/outbox.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

namespace tricorn {
namespace {

struct Owned final : Block {
  Owned(std::string text, int& released) : bytes(std::move(text)), released_(released) {}
  ~Owned() override { ++released_; }
  std::string bytes;

 private:
  int& released_;
};

std::string drain(Outbox& box, std::size_t step = 1000) {
  std::string all;
  while (!box.empty()) {
    const std::string_view bytes = box.front().substr(0, step);
    if (bytes.empty()) break;
    all += bytes;
    box.consume(bytes.size());
  }
  return all;
}

Ref<File> file_with(std::string_view content) {
  std::string path = ::testing::TempDir() + "outbox-XXXXXX";
  const int fd = mkstemp(path.data());
  unlink(path.c_str());
  EXPECT_EQ(write(fd, content.data(), content.size()), static_cast<ssize_t>(content.size()));
  return make_ref<File>(fd, content.size());
}

TEST(Outbox, GathersSmallAppendsInOneSegment) {
  Outbox box;
  box.append("head ");
  box.append("");
  box.append("body");
  std::array<iovec, 4> parts{};
  ASSERT_EQ(box.gather(parts), 1u);
  EXPECT_EQ(parts[0].iov_len, 9u);
  EXPECT_EQ(drain(box, 2), "head body");
}

TEST(Outbox, BorrowsWithoutCopyingAndReleasesAtTheLastOctet) {
  int released = 0;
  auto block = make_ref<Owned>(std::string(10'000, 'b'), released);
  const std::string_view bytes = block->bytes;
  Outbox box;
  box.append("a");
  box.borrow(bytes, Ref<Block>{block.get()});
  block.reset();
  std::array<iovec, 4> parts{};
  ASSERT_EQ(box.gather(parts), 2u);
  EXPECT_EQ(parts[1].iov_base, bytes.data());
  box.consume(10'000);
  EXPECT_EQ(released, 0);
  box.consume(1);
  EXPECT_EQ(released, 1);
}

TEST(Outbox, MovesAPartAndLeavesTheRest) {
  int released = 0;
  auto block = make_ref<Owned>("0123456789", released);
  Outbox from;
  Outbox to;
  from.append("ab");
  from.borrow(block->bytes, Ref<Block>{block.get()});
  from.append("yz");
  to.append("<");
  from.move_to(to, 5);
  EXPECT_EQ(to.size(), 6u);
  EXPECT_EQ(from.size(), 9u);
  to.append(">");
  from.move_to(to, 100);
  EXPECT_TRUE(from.empty());
  block.reset();
  EXPECT_EQ(released, 0);
  EXPECT_EQ(drain(to), "<ab012>3456789yz");
  EXPECT_EQ(released, 1);
}

TEST(Outbox, MovesALargeCopiedSegmentWithoutCopyingAgain) {
  Outbox from;
  Outbox to;
  from.append(std::string(12'000, 'x'));
  const void* where = from.front().data();
  from.move_to(to, 12'000);
  EXPECT_EQ(to.front().data(), where);
}

TEST(Outbox, ReadsAFileRangeForWhoeverNeedsMemory) {
  Outbox box;
  box.append("<");
  box.append_file(file_with("0123456789"), 2, 5);
  box.append(">");
  EXPECT_EQ(box.size(), 7u);
  EXPECT_EQ(box.front_file(), nullptr);
  box.consume(1);
  ASSERT_NE(box.front_file(), nullptr);
  EXPECT_EQ(box.front_file()->offset, 2u);
  std::array<iovec, 4> parts{};
  EXPECT_EQ(box.gather(parts), 0u);
  box.consume(1);  // sendfile took one
  EXPECT_EQ(drain(box), "3456>");
}

TEST(Outbox, SplitsAFileRange) {
  Outbox from;
  Outbox to;
  from.append_file(file_with("0123456789"), 0, 10);
  from.move_to(to, 4);
  EXPECT_EQ(drain(to), "0123");
  EXPECT_EQ(drain(from), "456789");
}

TEST(Outbox, ShowsNothingWhenAFileIsShorterThanPromised) {
  Outbox box;
  box.append_file(file_with("abc"), 0, 5);
  EXPECT_EQ(box.front(), "abc");
  box.consume(3);
  EXPECT_TRUE(box.front().empty());
  EXPECT_EQ(box.size(), 2u);
}

TEST(Outbox, TellsHowMuchIsInMemoryAndReadsALeadingFile) {
  Outbox box;
  EXPECT_EQ(box.load(100), 0u);
  box.append("<");
  box.append_file(file_with("0123456789"), 0, 12);
  EXPECT_EQ(box.load(100), 1u);  // up to the file
  EXPECT_EQ(box.load(0), 0u);
  box.consume(1);
  EXPECT_EQ(box.load(4), 4u);
  EXPECT_EQ(box.size(), 12u);
  EXPECT_EQ(box.load(100), 10u);
  box.consume(10);
  EXPECT_EQ(box.load(100), 0u);  // the file is shorter than promised
  EXPECT_EQ(box.size(), 2u);
}

TEST(Outbox, ReleasesEverythingWhenCleared) {
  int released = 0;
  Outbox box;
  {
    auto block = make_ref<Owned>(std::string(5000, 'x'), released);
    box.borrow(block->bytes, Ref<Block>{block.get()});
  }
  box.clear();
  EXPECT_EQ(released, 1);
  EXPECT_TRUE(box.empty());
  box.append("again");
  EXPECT_EQ(drain(box), "again");
}

}  // namespace
}  // namespace tricorn
