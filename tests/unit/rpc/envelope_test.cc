#include "rpc/envelope.h"

#include <gtest/gtest.h>

#include <vector>

#include "testing.h"

namespace tricorn::rpc {
namespace {

using testing::Cut;
using testing::every_cut;

struct Read {
  std::vector<std::pair<int, std::string>> messages;
  std::optional<RpcError> error;
  bool operator==(const Read&) const = default;
};

// Each piece lies in memory of its own, so that a view that outlives it is found by ASan.
Read read(const Cut& cut, std::optional<std::uint64_t> limit = std::nullopt) {
  Read result;
  EnvelopeReader reader{limit};
  for (const std::string_view piece : cut) {
    const std::vector<char> own{piece.begin(), piece.end()};
    std::string_view in{own.data(), own.size()};
    while (true) {
      auto next = reader.next(in);
      if (!next) {
        result.error = next.error();
        return result;
      }
      if (!*next) break;
      result.messages.emplace_back((*next)->flags, (*next)->message);
    }
    EXPECT_TRUE(in.empty());
  }
  if (auto ended = reader.end(); !ended) result.error = ended.error();
  return result;
}

std::string envelope(std::uint8_t flags, std::string_view message) {
  std::string bytes;
  append_envelope(bytes, flags, message);
  return bytes;
}

RpcError invalid(std::string text) { return {Code::invalid_argument, std::move(text)}; }

TEST(RpcEnvelope, WritesFlagsAndLength) {
  EXPECT_EQ(envelope(0, ""), (std::string_view{"\0\0\0\0\0", 5}));
  EXPECT_EQ(envelope(k_compressed | k_trailers, "ab"), (std::string_view{"\x81\0\0\0\2ab", 7}));
  EXPECT_EQ(envelope_head(k_end_stream, 0xfedcba98), (EnvelopeHead{'\x02', '\xfe', '\xdc', '\xba', '\x98'}));
}

TEST(RpcEnvelope, ReadsMessagesWhateverTheCuts) {
  const std::string bytes = envelope(0, "hello") + envelope(1, "") + envelope(0, "") + envelope(1, "world!");
  const Read expected{{{0, "hello"}, {1, ""}, {0, ""}, {1, "world!"}}, {}};
  for (const Cut& cut : every_cut(bytes)) EXPECT_EQ(read(cut), expected);
}

TEST(RpcEnvelope, DoesNotCopyAMessageThatArrivedWhole) {
  const std::string bytes = envelope(0, "one") + envelope(0, "two");
  EnvelopeReader reader{{}};
  std::string_view in = bytes;
  EXPECT_EQ((**reader.next(in)).message.data(), bytes.data() + 5);
  EXPECT_EQ((**reader.next(in)).message.data(), bytes.data() + 13);
  EXPECT_EQ(*reader.next(in), std::nullopt);
}

TEST(RpcEnvelope, RefusesUnknownFlagsFromTheHead) {
  for (int flags = 2; flags < 256; ++flags) {
    const std::string bytes = envelope(0, "x") + envelope(static_cast<std::uint8_t>(flags), "y");
    const Read expected{{{0, "x"}}, invalid("protocol error: invalid envelope flags")};
    for (const Cut& cut : every_cut(bytes)) EXPECT_EQ(read(cut), expected) << flags;
  }
  // flags before the limit, and not before the head is whole
  EXPECT_EQ(read({std::string_view{"\x04\xff\xff\xff\xff", 5}}, 1).error->code, Code::invalid_argument);
  EXPECT_EQ(read({std::string_view{"\x04\xff\xff\xff", 4}}, 1).error,
            invalid("protocol error: incomplete envelope: unexpected EOF"));
}

TEST(RpcEnvelope, RefusesAMessageOverTheLimitFromTheHead) {
  const RpcError error{Code::resource_exhausted, "message is larger than configured max 3"};
  EXPECT_EQ(read({std::string_view{"\0\0\0\0\4", 5}}, 3), (Read{{}, error}));
  EXPECT_EQ(read({std::string_view{"\1\xff\xff\xff\xff", 5}}, 3), (Read{{}, error}));
  const std::string bytes = envelope(0, "abc") + envelope(0, "abcd");
  for (const Cut& cut : every_cut(bytes)) EXPECT_EQ(read(cut, 3), (Read{{{0, "abc"}}, error}));
  EXPECT_EQ(read({std::string_view{"\0\0\0\0\0\0\0\0\0\1", 10}}, 0).error->code, Code::resource_exhausted);
}

TEST(RpcEnvelope, SaysTheSameErrorAgain) {
  EnvelopeReader reader{{}};
  std::string_view in{"\x02\0\0\0\0", 5};
  EXPECT_FALSE(reader.next(in));
  std::string_view more = "more";
  EXPECT_EQ(reader.next(more).error(), invalid("protocol error: invalid envelope flags"));
}

TEST(RpcEnvelope, SaysWhereTheInputEnded) {
  const std::string bytes = envelope(0, "neighbour") + envelope(0, "hello");
  for (std::size_t size = 15; size < bytes.size(); ++size) {
    const std::string text = size < 19
                                 ? "incomplete envelope: unexpected EOF"
                                 : "promised 5 bytes in enveloped message, got " + std::to_string(size - 19) + " bytes";
    for (const Cut& cut : every_cut(std::string_view{bytes}.substr(0, size)))
      EXPECT_EQ(read(cut), (Read{{{0, "neighbour"}}, invalid("protocol error: " + text)}));
  }
  EXPECT_EQ(read({}), Read{});
}

TEST(RpcEnvelope, HoldsLittleMoreThanHasArrived) {
  EnvelopeReader reader{{}};
  const std::string bytes = std::string{"\0\xff\xff\xff\xff", 5} + std::string(100, 'x');
  std::string_view in = bytes;
  EXPECT_EQ(*reader.next(in), std::nullopt);
  EXPECT_LE(reader.held(), 200u);
  EXPECT_EQ(reader.end().error(),
            invalid("protocol error: promised 4294967295 bytes in enveloped message, got 100 bytes"));
}

TEST(RpcEnvelope, ReadsALargeMessageInPieces) {
  const std::string large(1'000'000, 'x');
  const std::string bytes = envelope(1, large) + envelope(0, "small");
  for (std::size_t piece : {4096u, 65'536u, 999'999u}) {
    Cut cut;
    for (std::size_t at = 0; at < bytes.size(); at += piece) cut.push_back(std::string_view{bytes}.substr(at, piece));
    EXPECT_EQ(read(cut), (Read{{{1, large}, {0, "small"}}, {}}));
  }
}

TEST(RpcEnvelope, NamesACompressedMessageWithoutAnEncoding) {
  EXPECT_EQ(fail_compressed_without_encoding().error(),
            (RpcError{Code::internal, "protocol error: sent compressed message without compression support"}));
}

}  // namespace
}  // namespace tricorn::rpc
