// What a request or a response says before its body: control data and fields.
// Field names are lower-case; names and values are views into one arena that the Headers own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tricorn {

struct Field {
  std::string_view name;
  std::string_view value;
};

// Fields in order of arrival, duplicates kept. Views are valid until the next change.
class Headers {
 public:
  // Copies; the name is made lower-case.
  void add(std::string_view name, std::string_view value);

  // Building a field from pieces as a parser meets them; `commit` ends it. The value is trimmed at its end.
  void append_name(std::string_view piece);
  void append_value(std::string_view piece);
  void commit();

  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  Field operator[](std::size_t i) const;
  // Octets of all names and values, an unfinished field included.
  std::size_t octets() const { return bytes_.size(); }
  // The value of the first field of that (lower-case) name.
  std::optional<std::string_view> find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name).has_value(); }
  std::size_t count(std::string_view name) const;
  // Sets the value of the first field of that name, or adds it in front when there is none.
  void set_first(std::string_view name, std::string_view value);
  void clear();

  class Iterator {
   public:
    Iterator(const Headers& headers, std::size_t i) : headers_(&headers), i_(i) {}
    Field operator*() const { return (*headers_)[i_]; }
    Iterator& operator++() {
      ++i_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return i_ == other.i_; }

   private:
    const Headers* headers_;
    std::size_t i_;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

 private:
  struct Entry {
    std::uint32_t name, name_size, value, value_size;
  };
  std::string bytes_;
  std::vector<Entry> entries_;
  std::uint32_t open_name_ = 0;   // where the unfinished field starts
  std::uint32_t open_value_ = 0;  // where its value starts
};

enum class Version : std::uint8_t { http10, http11, http2 };
std::string_view to_string(Version version);  // "1.0", "1.1", "2": as the ASGI scope has it

struct RequestHead {
  std::string method;
  std::string target;    // path and query as sent ("/a%20b?x=1"), or "*", or the authority of CONNECT
  std::string protocol;  // :protocol of extended CONNECT (RFC 8441) or the h1 Upgrade taken; else empty
  Version version = Version::http11;
  Headers headers;

  std::string_view path() const;   // the target before '?'
  std::string_view query() const;  // after the first '?', empty if there is none
};

struct ResponseHead {
  int status = 200;
  Headers headers;
};

// The reason phrase of RFC 9110 15, empty for codes that have none.
std::string_view reason_phrase(int status);

}  // namespace tricorn
