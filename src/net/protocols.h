// Which HTTP versions a listener speaks.
#pragma once

#include "http/session.h"

namespace tricorn {

struct Protocols {
  bool http1 = true;
  bool http2 = true;

  bool has(Protocol protocol) const { return protocol == Protocol::http1 ? http1 : http2; }
};

}  // namespace tricorn
