// Elements of a row that share a place which data chose ask about it once.
#include "tiny_compile/tile/chosen_places.h"
#include "tests/catch.h"

using namespace tiny_compile;

namespace {

// Of a kernel of rows 40 and 96: the row of x that `chosen` says, or of a mask that says it may be left out.
std::set<ChosenPlace> places(const std::string& chosen, const std::string& value) {
  const Program program = parse_program(str(R"(program f {
  input x: f32[4800]
  input k: i64[96]
  output y: f32[3840]
  kernel row rows(i0: 40, i1: 96) {
    $0 = load k[)",
                                            chosen, R"(]
    $1 = )",
                                            value, R"(
    store y[i0*96 + i1] = $1
  }
  launch row
  return y
})"));
  return places_of_rows(program.kernels[0]);
}

const std::string kLoad = "load x[at0*96 + i1; at0 = $0 < 50]";

}  // namespace

TEST_CASE("a place that a row's elements share is asked about once", "[tile][chosen_places]") {
  CHECK(places("i0", kLoad) == std::set<ChosenPlace>{{0, 50}});
}

TEST_CASE("an element asks about a place of its own", "[tile][chosen_places]") {
  CHECK(places("i1", "load x[at0; at0 = $0 < 4800]").empty());
}

TEST_CASE("a place is not asked about where a mask may leave it out", "[tile][chosen_places]") {
  CHECK(places("i0", "load x[at0*96 + i1; at0 = $0 < 50] if lt(index[i1], i64 5) else 0.0")
            .empty());
}
