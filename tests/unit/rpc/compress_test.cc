#include "rpc/compress.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace tricorn::rpc {
namespace {

using namespace std::string_literals;

const RpcError k_cut{Code::invalid_argument,
                     "decompress: Compressed file ended before the end-of-stream marker was reached"};

RpcError malformed(std::string text) { return {Code::invalid_argument, "decompress: " + std::move(text)}; }
RpcError too_large(std::uint64_t limit) {
  return {Code::resource_exhausted, "message is larger than configured max " + std::to_string(limit)};
}

std::string noise(std::size_t size) {
  std::mt19937 random{7};
  std::string bytes(size, 0);
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

struct Compress : ::testing::Test {
  Compressor compressor;
  std::string gzip(std::string_view message) {
    std::string room;
    return std::string{compressor.compress(Encoding::gzip, message, room)};
  }
  std::expected<std::string, RpcError> gunzip(std::string_view data, std::optional<std::uint64_t> limit) {
    const std::vector<char> own{data.begin(), data.end()};  // exact bounds for ASan
    std::string room = "what was there";
    auto result = compressor.decompress(Encoding::gzip, {own.data(), own.size()}, limit, room);
    if (!result) return std::unexpected{result.error()};
    return std::string{*result};
  }
};

using RpcCompress = Compress;

TEST_F(RpcCompress, KnowsItsEncodingsByName) {
  EXPECT_EQ(encoding_named("identity"), Encoding::identity);
  EXPECT_EQ(encoding_named("gzip"), Encoding::gzip);
  EXPECT_EQ(name(Encoding::gzip), "gzip");
  for (std::string_view bad : {"", "GZIP", "deflate", "br"}) EXPECT_EQ(encoding_named(bad), std::nullopt);
}

TEST_F(RpcCompress, IdentityCopiesNothing) {
  const std::string message = "hello";
  std::string room;
  EXPECT_EQ(compressor.compress(Encoding::identity, message, room).data(), message.data());
  EXPECT_EQ(compressor.decompress(Encoding::identity, message, 5, room)->data(), message.data());
  EXPECT_EQ(compressor.decompress(Encoding::identity, message, 4, room).error(), too_large(4));
  EXPECT_EQ(*compressor.decompress(Encoding::identity, message, std::nullopt, room), "hello");
}

TEST_F(RpcCompress, GzipRoundTripsAndIsReused) {
  for (const std::string& message : {""s, "a"s, std::string(100'000, 'a'), noise(100'000), "again"s}) {
    const std::string data = gzip(message);
    EXPECT_EQ(gunzip(data, std::nullopt), message);
    EXPECT_EQ(gunzip(data, message.size()), message);
    EXPECT_EQ(gunzip(data, UINT64_MAX), message);
  }
  EXPECT_LT(gzip(std::string(100'000, 'a')).size(), 200u);
}

TEST_F(RpcCompress, NothingDecompressesToNothing) {
  EXPECT_EQ(gunzip("", 10), "");
  EXPECT_EQ(gunzip("", std::nullopt), "");
}

TEST_F(RpcCompress, StopsOneOctetPastTheLimit) {
  const std::string data = gzip(std::string(5'000'000, 'a'));
  for (std::uint64_t limit : {0u, 1u, 4095u, 4096u, 4097u, 4'999'999u})
    EXPECT_EQ(gunzip(data, limit).error(), too_large(limit));
  std::string room;
  EXPECT_FALSE(compressor.decompress(Encoding::gzip, data, 10'000, room));
  EXPECT_EQ(room.size(), 10'001u);
  EXPECT_LE(room.capacity(), 40'000u);
  EXPECT_EQ(gunzip(gzip("abc") + gzip("def"), 5).error(), too_large(5));
}

TEST_F(RpcCompress, ReadsManyMembers) {
  const std::string data = gzip("abc") + gzip("") + gzip("def");
  EXPECT_EQ(gunzip(data, 6), "abcdef");
  EXPECT_EQ(gunzip(data, std::nullopt), "abcdef");
}

TEST_F(RpcCompress, SaysThatTheInputWasCut) {
  const std::string data = gzip(noise(40));
  for (std::size_t size = 1; size < data.size(); ++size) {
    EXPECT_EQ(gunzip(data.substr(0, size), 100).error(), k_cut) << size;
    EXPECT_EQ(gunzip(data + data.substr(0, size), 100).error(), k_cut) << size;
  }
  for (std::size_t size = 2; size < data.size(); ++size)
    EXPECT_EQ(gunzip(data.substr(0, size), std::nullopt).error(), k_cut) << size;
  EXPECT_EQ(gunzip("\x1f", std::nullopt).error(), malformed("Not a gzipped file (b'\\x1f')"));
}

TEST_F(RpcCompress, TreatsWhatFollowsAMemberAsPythonDoes) {
  const std::string data = gzip("abc");
  EXPECT_EQ(gunzip(data + "junk", 100).error(), malformed("Error -3 while decompressing data: incorrect header check"));
  EXPECT_EQ(gunzip(data + "junk", std::nullopt).error(), malformed("Not a gzipped file (b'ju')"));
  EXPECT_EQ(gunzip(data + "\0\0"s, 100).error(),
            malformed("Error -3 while decompressing data: incorrect header check"));
  EXPECT_EQ(gunzip(data + "\0"s, 100).error(), k_cut);
  EXPECT_EQ(gunzip(data + "\0\0\0"s, std::nullopt), "abc");
  EXPECT_EQ(gunzip(data + "\0\0\0"s + data, std::nullopt), "abcabc");
}

TEST_F(RpcCompress, FindsWhatIsBroken) {
  std::string crc = gzip("abc"), length = crc, method = crc, flags = crc, block = crc;
  ++crc[crc.size() - 8];
  ++length[length.size() - 1];
  method[2] = 7;
  flags[3] = '\xe0';
  block[10] = 7;
  const auto zlib = [](std::string text) { return malformed("Error -3 while decompressing data: " + text); };
  EXPECT_EQ(gunzip(crc, 10).error(), zlib("incorrect data check"));
  EXPECT_EQ(gunzip(length, 10).error(), zlib("incorrect length check"));
  EXPECT_EQ(gunzip(method, 10).error(), zlib("unknown compression method"));
  EXPECT_EQ(gunzip(flags, 10).error(), zlib("unknown header flags set"));
  EXPECT_EQ(gunzip(block, 10).error(), zlib("invalid block type"));
  EXPECT_EQ(gunzip("{}", 10).error(), zlib("incorrect header check"));
  EXPECT_EQ(gunzip(crc, std::nullopt).error(), malformed("CRC check failed"));
  EXPECT_EQ(gunzip(length, std::nullopt).error(), malformed("Incorrect length of data produced"));
  EXPECT_EQ(gunzip(method, std::nullopt).error(), malformed("Unknown compression method"));
  EXPECT_EQ(gunzip(flags, std::nullopt), "abc");
  EXPECT_EQ(gunzip(block, std::nullopt).error(), zlib("invalid block type"));
}

TEST_F(RpcCompress, ReadsEveryPartOfAHead) {
  const std::string plain = gzip("abc");
  std::string full = plain.substr(0, 3) + "\x1c" + plain.substr(4, 6) + "\3\0xyzname\0comment\0"s;
  full += plain.substr(10);
  for (auto limit : {std::optional<std::uint64_t>{3}, std::optional<std::uint64_t>{}}) {
    EXPECT_EQ(gunzip(full, limit), "abc");
    for (std::size_t size = 2; size < full.size(); ++size)
      EXPECT_EQ(gunzip(full.substr(0, size), limit).error(), k_cut) << size;
  }
}

TEST_F(RpcCompress, ShowsTheFirstOctetsAsPythonDoes) {
  const std::pair<std::string, std::string> rows[] = {
      {"\t\n"s, "b'\\t\\n'"}, {"\r\\"s, "b'\\r\\\\'"},      {"'\""s, "b'\\'\"'"},    {"'a"s, "b\"'a\""},
      {"\"a"s, "b'\"a'"},     {"\0\x7f"s, "b'\\x00\\x7f'"}, {"\xff~"s, "b'\\xff~'"}, {"a"s, "b'a'"}};
  for (const auto& [bytes, shown] : rows)
    EXPECT_EQ(gunzip(bytes, std::nullopt).error(), malformed("Not a gzipped file (" + shown + ")"));
}

}  // namespace
}  // namespace tricorn::rpc
