// An intrusive, non-atomic reference count, for objects of the loop thread: no other thread may hold one.
#pragma once

#include <cstdint>
#include <utility>

namespace tricorn {

class Counted {
 public:
  Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 protected:
  virtual ~Counted() = default;

 private:
  template <class T>
  friend class Ref;
  std::uint32_t count_ = 0;
};

template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) { hold(); }
  Ref(const Ref& other) : object_(other.object_) { hold(); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { drop(); }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  void reset() { *this = Ref{}; }

 private:
  void hold() {
    if (object_) ++static_cast<Counted*>(object_)->count_;
  }
  void drop() {
    if (!object_) return;
    Counted* counted = object_;
    if (--counted->count_ == 0) delete counted;
  }

  T* object_ = nullptr;
};

template <class T, class... Args>
Ref<T> make_ref(Args&&... args) {
  return Ref<T>{new T(std::forward<Args>(args)...)};
}

}  // namespace tricorn
