// Which App answers a request: an exact path, else the default.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "http/app.h"

namespace tricorn {

class Router {
 public:
  explicit Router(App& otherwise) : otherwise_(otherwise) {}
  void add(std::string path, App& app) { routes_.insert_or_assign(std::move(path), &app); }
  App& find(std::string_view path) const {
    if (routes_.empty()) return otherwise_;
    const auto found = routes_.find(path);
    return found == routes_.end() ? otherwise_ : *found->second;
  }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  App& otherwise_;
  std::unordered_map<std::string, App*, Hash, std::equal_to<>> routes_;
};

}  // namespace tricorn
