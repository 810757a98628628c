#include "lessons/tools/check.h"
#include "exercise.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;
using exercise::BoundedCache;

namespace {

std::string keys_of(const BoundedCache& cache) {
  std::string keys;
  for (const exercise::Kept& kept : cache.entries) keys += kept.key + " ";
  return keys;
}

BoundedCache filled(size_t limit, const std::string& keys) {
  BoundedCache cache;
  cache.limit = limit;
  for (char key : keys) cache.add(std::string(1, key), key);
  return cache;
}

}  // namespace

TEST_CASE("what was added is found, and nothing else") {
  BoundedCache cache = filled(3, "abc");
  for (char key : std::string("abc")) CHECK(cache.find(std::string(1, key)) == int(key));
  CHECK(!cache.find("d"));
  CHECK(cache.entries.size() == 3);
}

TEST_CASE("there are never more entries than the limit") {
  for (size_t limit : {1, 2, 5}) {
    const BoundedCache cache = filled(limit, "abcdefgh");
    INFO("limit " << limit << ", left are " << keys_of(cache));
    CHECK(cache.entries.size() == limit);
  }
}

TEST_CASE("the oldest goes where nothing was found in between") {
  BoundedCache cache = filled(3, "abcd");
  INFO("left are " << keys_of(cache));
  CHECK(!cache.find("a"));
  CHECK(cache.find("b"));
}

TEST_CASE("what was found stays longer than what was not") {
  BoundedCache cache = filled(3, "abc");
  cache.find("a");
  cache.add("d", 1);
  INFO("left are " << keys_of(cache));
  CHECK(cache.find("a"));
  CHECK(!cache.find("b"));
}

TEST_CASE("looking for what is not there is no use of anything") {
  BoundedCache cache = filled(3, "abc");
  cache.find("x");
  INFO("in order: " << keys_of(cache));
  CHECK(keys_of(cache) == "c b a ");
}

TEST_CASE("a key that is added again has its new code, once") {
  BoundedCache cache = filled(3, "abc");
  cache.add("b", 7);
  INFO("in order: " << keys_of(cache));
  CHECK(keys_of(cache) == "b c a ");
  CHECK(cache.find("b") == 7);
}

TEST_CASE("a loop over one kind too many finds nothing") {
  BoundedCache cache = filled(3, "abcd");
  int found = 0;
  for (int round = 0; round < 5; round++) {
    for (char key : std::string("abcd")) {
      if (cache.find(std::string(1, key)))
        found++;
      else
        cache.add(std::string(1, key), key);
    }
  }
  INFO("the entry that is needed next is always the one that went");
  CHECK(found == 0);
}
