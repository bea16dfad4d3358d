// An intrusive doubly linked list. An item is in at most one list per hook and leaves it when destroyed.
// The list owns nothing. Ready, dirty, open and running lists are made of this.
#pragma once

#include <cstddef>

namespace tricorn {

template <class T, class Tag>
class List;

// Inherit one Hook per list that an object can be in: `struct Ready; class Exchange : public Hook<Ready>`.
template <class Tag>
class Hook {
 public:
  Hook() = default;
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;
  ~Hook() { unlink(); }

  bool linked() const { return next_ != nullptr; }
  void unlink() {
    if (!linked()) return;
    prev_->next_ = next_;
    next_->prev_ = prev_;
    next_ = prev_ = nullptr;
  }

 private:
  template <class T, class U>
  friend class List;
  Hook* next_ = nullptr;
  Hook* prev_ = nullptr;
};

template <class T, class Tag>
class List {
 public:
  List() { head_.next_ = head_.prev_ = &head_; }
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() {
    while (!empty()) head_.next_->unlink();
    head_.next_ = head_.prev_ = nullptr;
  }

  bool empty() const { return head_.next_ == &head_; }
  T* front() { return empty() ? nullptr : static_cast<T*>(head_.next_); }
  // Links at the back; an item that is linked already stays where it is.
  void push(T& item) {
    Hook<Tag>& hook = item;
    if (hook.linked()) return;
    hook.prev_ = head_.prev_;
    hook.next_ = &head_;
    head_.prev_->next_ = &hook;
    head_.prev_ = &hook;
  }
  T* pop() {
    T* item = front();
    if (item) static_cast<Hook<Tag>&>(*item).unlink();
    return item;
  }
  template <class Test>
  T* first(Test&& test) {
    for (Hook<Tag>* at = head_.next_; at != &head_; at = at->next_)
      if (test(*static_cast<const T*>(at))) return static_cast<T*>(at);
    return nullptr;
  }
  // Moves everything to the back of `other`, in order: work through a snapshot while new items arrive here.
  void move_to(List& other) {
    while (T* item = pop()) other.push(*item);
  }
  // `visit` may unlink the item it is given, and no other.
  template <class Visit>
  void each(Visit&& visit) {
    for (Hook<Tag>* at = head_.next_; at != &head_;) {
      Hook<Tag>* next = at->next_;
      visit(*static_cast<T*>(at));
      at = next;
    }
  }

 private:
  Hook<Tag> head_;
};

}  // namespace tricorn
