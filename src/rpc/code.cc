#include "rpc/code.h"

#include <array>

namespace tricorn::rpc {
namespace {

struct Row {
  std::string_view name;
  int status;
};

// In order of the codes' values, from 1.
constexpr std::array<Row, 16> k_rows{{{"canceled", 499},
                                      {"unknown", 500},
                                      {"invalid_argument", 400},
                                      {"deadline_exceeded", 504},
                                      {"not_found", 404},
                                      {"already_exists", 409},
                                      {"permission_denied", 403},
                                      {"resource_exhausted", 429},
                                      {"failed_precondition", 400},
                                      {"aborted", 409},
                                      {"out_of_range", 400},
                                      {"unimplemented", 501},
                                      {"internal", 500},
                                      {"unavailable", 503},
                                      {"data_loss", 500},
                                      {"unauthenticated", 401}}};
static_assert(static_cast<std::size_t>(Code::unauthenticated) == k_rows.size());

const Row& row(Code code) { return k_rows[static_cast<std::size_t>(code) - 1]; }

}  // namespace

std::string_view name(Code code) { return row(code).name; }

int http_status(Code code) { return row(code).status; }

std::optional<Code> code_named(std::string_view name) {
  for (unsigned i = 0; i < k_rows.size(); ++i)
    if (k_rows[i].name == name) return code_of_grpc(i + 1);
  return std::nullopt;
}

std::optional<Code> code_of_grpc(unsigned status) {
  if (status == 0 || status > k_rows.size()) return std::nullopt;
  return static_cast<Code>(status);
}

std::unexpected<RpcError> fail_too_large(std::uint64_t limit) {
  return fail(Code::resource_exhausted, "message is larger than configured max " + std::to_string(limit));
}

}  // namespace tricorn::rpc
