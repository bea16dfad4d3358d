// What answers exchanges. ASGI, native RPC and (later) others implement this; sessions never see which.
#pragma once

namespace tricorn {

class Exchange;

// What an App keeps for one exchange while its call runs; the App derives from it.
class Call {
 protected:
  ~Call() = default;
};

class App {
 public:
  // At the end of the I/O phase, without the GIL: work that needs no Python. May answer by itself.
  virtual void advance(Exchange&) {}
  // With the GIL, once for every time the exchange became ready. Never throws.
  virtual void dispatch(Exchange&) = 0;

 protected:
  ~App() = default;
};

}  // namespace tricorn
