// Test cases that end in every way an answer can, for tests/lessons/check_test.cpp.
#include <csignal>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

#include "lessons/tools/check.h"

using namespace tiny_compile::lessons;

TEST_CASE("passes and prints") {
  std::printf("looking\n");
  score("kernels", 3, 2);
}

TEST_CASE("fails with a sentence") {
  EXPECT("x is 4, not 5");
  EXPECT("not reached: a case stops at its first failure");
}

TEST_CASE("fails with an expression") {
  const int two = 2;
  CHECK(two + 2 == 5);
}

TEST_CASE("throws") { throw std::runtime_error("no such node"); }

TEST_CASE("reads where nothing is") {
  std::printf("about to read\n");
  std::raise(SIGSEGV);
}

TEST_CASE("takes all memory") {
  std::vector<std::unique_ptr<char[]>> all;
  for (;;) all.emplace_back(new char[size_t{1} << 28]);
}

TEST_CASE("writes behind its array") {
  Walled<int> array(7);
  array.data()[7] = 1;
  EXPECT(array.broken_wall());
}

TEST_CASE("never ends") {
  volatile bool end = false;
  while (!end) {
  }
}

TEST_CASE("comes after it") {}
