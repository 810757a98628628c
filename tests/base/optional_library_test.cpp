// A library that does not open is named. No GPU needed.
#include "tiny_compile/base/optional_library.h"

#include "tests/catch.h"
#include "tests/runtime/scratch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* kNames[] = {"libtc_nowhere.so.1", "libtc_nowhere.so"};

std::string problem() {
  const OptionalLibrary library({kNames[0], kNames[1]});
  CHECK_FALSE(library.found());
  CHECK(library.path().empty());
  CHECK(library.identity().empty());
  return library.problem();
}

}  // namespace

TEST_CASE("a library that is nowhere: what was tried, and the first failure",
          "[optional_library]") {
  CHECK_THAT(problem(), ContainsSubstring("none of libtc_nowhere.so.1, libtc_nowhere.so") &&
                            ContainsSubstring("(libtc_nowhere.so.1: cannot open"));
}

TEST_CASE("a library that is there and does not open is the one to hear of",
          "[optional_library]") {
  for (const char* name : kNames) {
    const Scratch scratch;
    mkdir(scratch.path("lib64").c_str(), 0700);
    const std::string broken = scratch.path("lib64/") + name;
    write_text(broken,
               "not a library, and long enough to have the header of one, or nearly so");
    const Setting home("CUDA_HOME", scratch.path(""));
    const Setting no_path("CUDA_PATH", nullptr);
    const std::string said = problem();
    CHECK_THAT(said, ContainsSubstring(scratch.path("")) && ContainsSubstring(name));
    CHECK_THAT(said, !ContainsSubstring("No such file"));
  }
}

TEST_CASE("of two that do not open, the one looked for first is named", "[optional_library]") {
  const Scratch scratch;
  mkdir(scratch.path("lib64").c_str(), 0700);
  for (const char* name : kNames) write_text(scratch.path("lib64/") + name, "short");
  const Setting home("CUDA_HOME", scratch.path(""));
  CHECK_THAT(problem(), ContainsSubstring("lib64/libtc_nowhere.so.1: file too short"));
}

TEST_CASE("a library that opens is found under its path", "[optional_library]") {
  const OptionalLibrary library({"libtc_nowhere.so", "libm.so.6"});
  REQUIRE(library.found());
  CHECK_THAT(library.path(), ContainsSubstring("/libm.so.6"));
  CHECK(library.identity() == file_identity(library.path()));
  double (*root)(double) = nullptr;
  library.find(root, "sqrt");
  CHECK(root(4.0) == 2.0);
  CHECK_THAT(message_of([&] { library.find(root, "no_such_function"); }),
             ContainsSubstring("libm.so.6 has no function no_such_function"));
}
