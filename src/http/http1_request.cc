#include "http/http1_request.h"

#include <array>
#include <string>
#include <string_view>

#include "base/text.h"

namespace tricorn {
namespace {

// The fields that matter here, gathered in one pass.
struct Seen {
  std::size_t hosts = 0;
  std::string_view host;
  bool close = false, keep_alive = false, upgrade_option = false;  // Connection
  bool upgrade = false;
  bool continues = false;  // Expect
  std::optional<std::string_view> length;
  bool encoded = false;  // Transfer-Encoding
  std::size_t codings = 0, chunked = 0;
  bool chunked_last = false;
  bool streams = false;  // Content-Type

  void on_host(std::string_view value) {
    ++hosts;
    host = value;
  }
  void on_connection(std::string_view value) {
    each_in_list(value, [this](std::string_view option) {
      close = close || equals_ignoring_case(option, "close");
      keep_alive = keep_alive || equals_ignoring_case(option, "keep-alive");
      upgrade_option = upgrade_option || equals_ignoring_case(option, "upgrade");
    });
  }
  void on_upgrade(std::string_view) { upgrade = true; }
  // RFC 9110 10.1.1: other expectations may be refused; like everyone we ignore them.
  void on_expect(std::string_view value) { continues = continues || list_has(value, "100-continue"); }
  void on_length(std::string_view value) { length = value; }
  void on_encoding(std::string_view value) {
    encoded = true;
    each_in_list(value, [this](std::string_view coding) {
      ++codings;
      chunked_last = equals_ignoring_case(coding, "chunked");
      chunked += chunked_last;
    });
  }
  void on_type(std::string_view value) {
    for (std::string_view prefix : {"application/connect+", "application/grpc"})
      streams = streams || equals_ignoring_case(value.substr(0, prefix.size()), prefix);
  }
};

Seen look(const Headers& headers) {
  struct Row {
    std::string_view name;
    void (Seen::*see)(std::string_view);
  };
  static constexpr std::array rows{
      Row{"host", &Seen::on_host},
      Row{"connection", &Seen::on_connection},
      Row{"upgrade", &Seen::on_upgrade},
      Row{"expect", &Seen::on_expect},
      Row{"content-length", &Seen::on_length},
      Row{"content-type", &Seen::on_type},
      Row{"transfer-encoding", &Seen::on_encoding},
  };
  Seen seen;
  for (Field field : headers)
    for (const Row& row : rows)
      if (field.name == row.name) (seen.*row.see)(field.value);
  return seen;
}

constexpr int k_fine = 0;

// RFC 9112 3.2. An empty value is valid there: probes of load balancers send it.
int check_host(const Seen& seen, Version version) {
  if (seen.hosts > 1) return 400;
  if (seen.hosts == 0) return version == Version::http10 ? k_fine : 400;
  return seen.host.empty() || is_host(seen.host) ? k_fine : 400;
}

// RFC 9112 6.1, 6.3: chunked once, alone and in HTTP/1.1 only.
int check_framing(const Seen& seen, Version version) {
  if (!seen.encoded) return k_fine;
  if (version == Version::http10 || seen.length) return 400;
  if (!seen.chunked_last || seen.chunked > 1) return 400;
  return seen.codings == 1 ? k_fine : 501;
}

// RFC 9112 3.2.2, RFC 9110 4.2.1 and 4.2.4: no empty host, no userinfo.
int take_absolute_form(RequestHead& head) {
  const std::string_view target = head.target;
  const std::size_t colon = target.find("://");
  if (colon == std::string_view::npos) return 400;
  const std::string_view scheme = target.substr(0, colon);
  if (!equals_ignoring_case(scheme, "http") && !equals_ignoring_case(scheme, "https")) return 400;
  const std::string_view rest = target.substr(colon + 3);
  const std::size_t end = std::min(rest.find_first_of("/?"), rest.size());
  const std::string_view authority = rest.substr(0, end);
  if (!is_host(authority)) return 400;
  head.headers.set_first("host", authority);

  const std::string_view path = rest.substr(end);
  if (path.empty() && head.method == "OPTIONS") {
    head.target = "*";  // RFC 9112 3.2.4
  } else {
    head.target = path.starts_with('/') ? std::string{path} : "/" + std::string{path};
  }
  return k_fine;
}

int check_target(RequestHead& head) {
  if (head.method == "CONNECT") return 501;  // not a proxy
  if (head.target.find('#') != std::string::npos) return 400;
  if (head.target.starts_with('/')) return k_fine;
  if (head.target == "*") return head.method == "OPTIONS" ? k_fine : 400;
  return take_absolute_form(head);
}

}  // namespace

std::expected<RequestTerms, int> read_terms(RequestHead& head) {
  const Seen seen = look(head.headers);
  RequestTerms terms;
  if (seen.length) {
    const auto length = parse_number(*seen.length);
    if (!length) return std::unexpected{400};
    terms.length = *length;
  }
  const bool modern = head.version != Version::http10;
  terms.keep_alive = !seen.close && (modern || seen.keep_alive);
  terms.expects_continue = modern && seen.continues;
  terms.upgrade = modern && seen.upgrade && seen.upgrade_option;  // RFC 9110 7.8
  terms.patient = seen.streams;
  for (int refusal : {check_host(seen, head.version), check_framing(seen, head.version), check_target(head)})
    if (refusal != k_fine) return std::unexpected{refusal};
  return terms;
}

}  // namespace tricorn
