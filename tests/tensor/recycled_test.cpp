#include "tiny_compile/tensor/recycled.h"

#include <set>
#include <thread>
#include <vector>

#include "tests/catch.h"

using namespace tiny_compile;

namespace {

// Of a size that nothing else has, so that a test knows what its thread keeps.
template <int tag>
struct Small {
  explicit Small(int value) : value(value) {}
  int value;
  char rest[600 + 16 * tag] = {};
};

template <int tag>
std::vector<std::shared_ptr<Small<tag>>> many(int count) {
  std::vector<std::shared_ptr<Small<tag>>> made;
  for (int i = 0; i < count; i++) made.push_back(make_recycled<Small<tag>>(i));
  return made;
}

template <int tag>
std::set<const void*> places_of(const std::vector<std::shared_ptr<Small<tag>>>& objects) {
  std::set<const void*> places;
  for (const auto& object : objects) places.insert(object.get());
  return places;
}

}  // namespace

TEST_CASE("live objects have places of their own, freed ones are used again", "[recycled]") {
  auto first = many<0>(300);
  const std::set<const void*> places = places_of(first);
  REQUIRE(places.size() == 300);
  for (int i = 0; i < 300; i++) CHECK(first[static_cast<size_t>(i)]->value == i);
  first.clear();
  const auto second = many<0>(300);
#ifndef __SANITIZE_ADDRESS__
  CHECK(places_of(second) == places);
#endif
  for (int i = 0; i < 300; i++) CHECK(second[static_cast<size_t>(i)]->value == i);
  CHECK(places_of(many<0>(1)).count(second[0].get()) == 0);
}

TEST_CASE("a place is kept until nobody asks for the count of its owners", "[recycled]") {
  auto object = make_recycled<Small<1>>(7);
  const std::weak_ptr<Small<1>> watcher = object;
  const void* const place = object.get();
  object.reset();
  CHECK(watcher.expired());
  CHECK(make_recycled<Small<1>>(8).get() != place);
}

TEST_CASE("a thread keeps so many places and no more", "[recycled]") {
  SparePlaces spare;
  spare.most = 2;
  alignas(16) std::byte memory[3][16];
  CHECK(spare.take() == nullptr);
  CHECK(spare.keep(memory[0]));
  CHECK(spare.keep(memory[1]));
  CHECK_FALSE(spare.keep(memory[2]));
  CHECK(spare.take() == memory[1]);
  CHECK(spare.take() == memory[0]);
  CHECK(spare.take() == nullptr);
}

TEST_CASE("objects may be freed on another thread, and by a thread's last destructors",
          "[recycled]") {
  std::vector<std::shared_ptr<Small<2>>> made;
  std::thread([&] { made = many<2>(2000); }).join();
  for (int i = 0; i < 2000; i++) REQUIRE(made[static_cast<size_t>(i)]->value == i);
  std::thread([&] { made.clear(); }).join();
  std::thread([] {
    static thread_local std::shared_ptr<Small<2>> last;  // is destroyed after the sweep
    last = make_recycled<Small<2>>(5);
  }).join();
  CHECK(many<2>(3)[2]->value == 2);
}
