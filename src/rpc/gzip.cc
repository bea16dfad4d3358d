#include "rpc/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <new>

namespace tricorn::rpc {
namespace {

constexpr int k_gzip = MAX_WBITS + 16;  // zlib reads and writes gzip's head and tail
constexpr int k_raw = -MAX_WBITS;
constexpr int k_level = 6;
constexpr int k_memory = 8;               // zlib's default
constexpr std::size_t k_step = 1U << 30;  // zlib counts in 32 bits
constexpr std::size_t k_more_room = 4096;
constexpr std::string_view k_cut = "Compressed file ended before the end-of-stream marker was reached";

std::unexpected<RpcError> malformed(std::string_view why) {
  return fail(Code::invalid_argument, "decompress: " + std::string{why});
}

void check_memory(int result) {
  if (result != Z_OK) throw std::bad_alloc{};  // the only way that initialising can fail here
}

uInt step(std::size_t size) { return static_cast<uInt>(std::min(size, k_step)); }

// zlib wants pointers to what it does not change.
Bytef* octets(const char* data) { return reinterpret_cast<Bytef*>(const_cast<char*>(data)); }
Bytef* octets(std::string_view in) { return octets(in.begin()); }

// The words of CPython's zlib module.
std::unexpected<RpcError> zlib_error(const z_stream& stream, int result) {
  std::string_view why = stream.msg ? stream.msg : "";
  if (why.empty() && result == Z_STREAM_ERROR) why = "inconsistent stream state";
  if (why.empty() && result == Z_DATA_ERROR) why = "invalid input data";
  const std::string text = "Error " + std::to_string(result) + " while decompressing data";
  return malformed(why.empty() ? text : text + ": " + std::string{why});
}

// One run over `in`: inflates behind what `room` holds until the member or the input ends or `room` has `most` octets.
// `in` becomes what was not used.
int inflate_member(z_stream& stream, std::string_view& in, std::string& room, std::size_t most) {
  std::size_t have = room.size();
  int result = Z_OK;
  do {
    if (have == room.size()) {
      if (have == most) break;
      room.resize(std::min(most, std::max(2 * have, have + in.size() + k_more_room)));
    }
    const uInt offered_in = step(in.size());
    const uInt offered_out = step(room.size() - have);
    stream.next_in = octets(in);
    stream.avail_in = offered_in;
    stream.next_out = octets(room.data() + have);
    stream.avail_out = offered_out;
    result = inflate(&stream, Z_SYNC_FLUSH);
    in.remove_prefix(offered_in - stream.avail_in);
    have += offered_out - stream.avail_out;
  } while ((result == Z_OK || result == Z_BUF_ERROR) && (stream.avail_out == 0 || !in.empty()));
  room.resize(have);
  return result;
}

bool is_fault(int result) { return result != Z_OK && result != Z_BUF_ERROR && result != Z_STREAM_END; }

// --- gzip's head as Python's gzip module reads it ---

std::string python_repr(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef", plain = "\t\n\r\\", escaped = "tnr\\";
  const char quote = bytes.contains('\'') && !bytes.contains('"') ? '"' : '\'';
  std::string text{'b', quote};
  for (const char c : bytes) {
    const auto octet = static_cast<unsigned char>(c);
    if (const std::size_t i = plain.find(c); i != std::string_view::npos) {
      text.append(1, '\\').append(1, escaped[i]);
    } else if (c == quote) {
      text.append(1, '\\').append(1, c);
    } else if (octet < 0x20 || octet > 0x7e) {
      text.append("\\x").append(1, digits[octet >> 4]).append(1, digits[octet & 15]);
    } else {
      text += c;
    }
  }
  return text += quote;
}

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t n = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) n = n << 8 | static_cast<unsigned char>(bytes[i]);
  return n;
}

// RFC 1952 2.3.1.
constexpr unsigned k_head_crc = 2, k_extra = 4, k_name = 8, k_comment = 16;
constexpr std::size_t k_head = 10, k_tail = 8;

// Takes the head off the front of `in`, which is not empty.
Outcome<> skip_head(std::string_view& in) {
  if (!in.starts_with("\x1f\x8b")) return malformed("Not a gzipped file (" + python_repr(in.substr(0, 2)) + ")");
  if (in.size() < k_head) return malformed(k_cut);
  if (in[2] != Z_DEFLATED) return malformed("Unknown compression method");
  const auto flags = static_cast<unsigned char>(in[3]);
  in.remove_prefix(k_head);
  const auto skip = [&](std::size_t size) {
    const bool there = size <= in.size();
    in.remove_prefix(std::min(size, in.size()));
    return there;
  };
  if (flags & k_extra) {
    const std::size_t size = little_endian(in.substr(0, 2));
    if (!skip(2) || !skip(size)) return malformed(k_cut);
  }
  for (const unsigned text : {k_name, k_comment})  // one that does not end is no error yet
    if (flags & text) in.remove_prefix(std::min(in.find('\0'), in.size() - 1) + 1);
  if ((flags & k_head_crc) && !skip(2)) return malformed(k_cut);
  return {};
}

Outcome<> check_tail(std::string_view tail, std::string_view member) {
  if (little_endian(tail.substr(0, 4)) != crc32_z(0, octets(member), member.size()))
    return malformed("CRC check failed");
  if (little_endian(tail.substr(4, 4)) != static_cast<std::uint32_t>(member.size()))
    return malformed("Incorrect length of data produced");
  return {};
}

}  // namespace

struct Gzip::Deflater {
  z_stream stream{};
  Deflater() { check_memory(deflateInit2(&stream, k_level, Z_DEFLATED, k_gzip, k_memory, Z_DEFAULT_STRATEGY)); }
  ~Deflater() { deflateEnd(&stream); }
};

struct Gzip::Inflater {
  z_stream stream{};
  Inflater() { check_memory(inflateInit2(&stream, k_gzip)); }
  ~Inflater() { inflateEnd(&stream); }
};

Gzip::Gzip() = default;
Gzip::~Gzip() = default;

std::string_view Gzip::compress(std::string_view message, std::string& room) {
  if (!deflater_) deflater_ = std::make_unique<Deflater>();
  z_stream& stream = deflater_->stream;
  deflateReset(&stream);
  room.resize(deflateBound(&stream, message.size()));
  std::size_t have = 0;
  int result = Z_OK;
  while (result == Z_OK) {
    const uInt offered_in = step(message.size());
    const uInt offered_out = step(room.size() - have);
    stream.next_in = octets(message);
    stream.avail_in = offered_in;
    stream.next_out = octets(room.data() + have);
    stream.avail_out = offered_out;
    result = deflate(&stream, offered_in == message.size() ? Z_FINISH : Z_NO_FLUSH);
    message.remove_prefix(offered_in - stream.avail_in);
    have += offered_out - stream.avail_out;
  }
  room.resize(have);
  return room;
}

Outcome<std::string_view> Gzip::decompress(std::string_view data, std::optional<std::uint64_t> limit,
                                           std::string& room) {
  room.clear();
  if (!inflater_) inflater_ = std::make_unique<Inflater>();
  return limit ? decompress_limited(data, *limit, room) : decompress_unlimited(data, room);
}

Outcome<std::string_view> Gzip::decompress_limited(std::string_view data, std::uint64_t limit, std::string& room) {
  z_stream& stream = inflater_->stream;
  const std::size_t most = std::min<std::uint64_t>(limit, room.max_size() - 1) + 1;
  while (!data.empty()) {
    inflateReset2(&stream, k_gzip);
    const int result = inflate_member(stream, data, room, most);
    if (is_fault(result)) return zlib_error(stream, result);
    if (room.size() > limit) return fail_too_large(limit);
    if (result != Z_STREAM_END) return malformed(k_cut);
  }
  return room;
}

Outcome<std::string_view> Gzip::decompress_unlimited(std::string_view data, std::string& room) {
  z_stream& stream = inflater_->stream;
  while (!data.empty()) {
    if (auto ok = skip_head(data); !ok) return std::unexpected{std::move(ok.error())};
    inflateReset2(&stream, k_raw);
    const std::size_t start = room.size();
    const int result = inflate_member(stream, data, room, room.max_size());
    if (is_fault(result)) return zlib_error(stream, result);
    if (result != Z_STREAM_END || data.size() < k_tail) return malformed(k_cut);
    if (auto ok = check_tail(data, std::string_view{room}.substr(start)); !ok)
      return std::unexpected{std::move(ok.error())};
    data.remove_prefix(k_tail);
    data.remove_prefix(std::min(data.find_first_not_of('\0'), data.size()));
  }
  return room;
}

}  // namespace tricorn::rpc
