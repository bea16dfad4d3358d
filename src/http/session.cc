#include "http/session.h"

namespace tricorn {

std::unique_ptr<Session> make_session(Protocol protocol, Host& host, DirtyHook& dirty, const Peer& peer) {
  return protocol == Protocol::http2 ? make_http2(host, dirty, peer) : make_http1(host, dirty, peer);
}

}  // namespace tricorn
