// Small shared objects that every call of a function makes and its caller frees. Each thread keeps
// the places of those it freed, counts of owners included, for those it makes next:
//
//   make_recycled<TensorData>()   as std::make_shared, in a fifth of the time where there are
//                                 hundreds: malloc keeps seven of a size at hand
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace tiny_compile {

// Of one size and one thread. Has no destructor, so that a thread's last ones can ask for it.
struct SparePlaces {
  struct Place {
    Place* next;
  };
#ifdef __SANITIZE_ADDRESS__  // which finds more where nothing is used again
  size_t most = 0;
#else
  size_t most = 1024;
#endif
  size_t count = 0;
  Place* first = nullptr;
  bool is_new = true;

  void* take() {  // null where there is none
    Place* const place = first;
    if (!place) return nullptr;
    first = place->next;
    count--;
    return place;
  }
  bool keep(void* place) {  // false: there are enough
    if (count >= most) return false;
    first = ::new (place) Place{first};
    count++;
    return true;
  }
};

// When the thread ends.
class SweepAtEnd {
 public:
  explicit SweepAtEnd(SparePlaces& spare) : spare_(spare) {}
  ~SweepAtEnd() {
    while (void* place = spare_.take()) ::operator delete(place);
    spare_.most = 0;
  }
  SweepAtEnd(const SweepAtEnd&) = delete;
  SweepAtEnd& operator=(const SweepAtEnd&) = delete;

 private:
  SparePlaces& spare_;
};

template <size_t bytes>
SparePlaces& spare_places() {
  static constinit thread_local SparePlaces spare;
  if (spare.is_new) {
    spare.is_new = false;
    static thread_local const SweepAtEnd sweep(spare);
  }
  return spare;
}

template <typename T>
struct Recycled {  // an allocator, for std::allocate_shared: of one object at a time
  using value_type = T;
  Recycled() = default;
  template <typename Other>
  Recycled(const Recycled<Other>&) {}  // NOLINT: it is converted to that of object and counts

  T* allocate(size_t) {
    void* const place = spare_places<sizeof(T)>().take();
    return static_cast<T*>(place ? place : ::operator new(sizeof(T)));
  }
  void deallocate(T* place, size_t) {
    if (!spare_places<sizeof(T)>().keep(place)) ::operator delete(place);
  }
  bool operator==(const Recycled&) const { return true; }
};

template <typename T, typename... Arguments>
std::shared_ptr<T> make_recycled(Arguments&&... arguments) {
  return std::allocate_shared<T>(Recycled<T>(), std::forward<Arguments>(arguments)...);
}

}  // namespace tiny_compile
