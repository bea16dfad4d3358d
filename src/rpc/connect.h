// What only the Connect protocol has: the unary request in a GET's query, and errors and stream ends as JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/head.h"
#include "rpc/code.h"

namespace tricorn::rpc {

// The first value under that name, as urllib.parse.parse_qs(query, keep_blank_values=True) has it.
std::optional<std::string> query_value(std::string_view query, std::string_view name);

struct GetRequest {
  std::string message;   // still compressed
  std::string encoding;  // "identity" when the query says nothing
};
Outcome<GetRequest> read_get(std::string_view query);

// Laid out as Python's json.dumps does. `details` is the JSON list of an error's details, or empty.
std::string error_json(const RpcError& error, std::string_view details = {});
// The end-of-stream message; `error` is what error_json made, or empty.
std::string end_stream_json(const Headers& trailers, std::string_view error = {});

// As base64.urlsafe_b64decode(text + "===") of Python: other characters are skipped, both alphabets do.
// Nothing when Python raises.
std::optional<std::string> base64url_decode(std::string_view text);

}  // namespace tricorn::rpc
