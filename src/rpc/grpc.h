// How gRPC and gRPC-Web say how a call ended: grpc-status and its companions, as trailers or as a block of text.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "http/head.h"
#include "rpc/code.h"

namespace tricorn::rpc {

// The application's trailers, then the status. `details` is an encoded google.rpc.Status, or empty.
// What the application itself says under a name that is set here is dropped.
Headers status_trailers(const Headers& application, const RpcError& error, std::string_view details = {});
Headers ok_trailers(const Headers& application);

// The payload of gRPC-Web's trailer frame. Fails with Fault::value for a name or value that would break its lines.
Result<std::string> trailer_block(const Headers& trailers);

// As urllib.parse.quote(text, safe="").
std::string percent_encode(std::string_view text);
// The standard alphabet, without padding.
std::string base64(std::string_view bytes);

}  // namespace tricorn::rpc
