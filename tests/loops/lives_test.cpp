// Which buffers are alive at once, and whether two of them share bytes.
#include "tiny_compile/loops/lives.h"

#include "tests/catch.h"
#include "tiny_compile/loops/schedule.h"

using namespace tiny_compile;

namespace {

// x -> t0 -> t1 -> ... -> y, each the one before read backwards, so that none is written over it
Program chain(int temporaries) {
  std::string buffers = "  input x: f32[16]\n", kernels, launches, from = "x";
  for (int k = 0; k <= temporaries; k++) {
    const std::string to = k == temporaries ? "y" : str("t", k);
    buffers += str(k == temporaries ? "  output " : "  temp ", to, ": f32[16]\n");
    kernels += str("  kernel k", k, " rows(i0: 16) {\n    store ", to, "[i0] = exp(load ", from,
                   "[15 - i0])\n  }\n");
    launches += str("  launch k", k, "\n");
    from = to;
  }
  return parse_program("program p {\n" + buffers + kernels + launches + "  return y\n}\n");
}

}  // namespace

TEST_CASE("a buffer lives from the first launch that uses it to the last", "[lives]") {
  const std::vector<Life> all = lives(chain(2));
  REQUIRE(all.size() == 4);
  REQUIRE((all[0].buffer == 0 && all[0].first == 0 && all[0].last == 0));
  REQUIRE((all[1].buffer == 1 && all[1].first == 0 && all[1].last == 1));
  REQUIRE((all[3].buffer == 3 && all[3].first == 2 && all[3].last == 2));
}

TEST_CASE("a chain of a thousand temporaries needs two places", "[lives]") {
  Program program = plan_memory(chain(1000));
  REQUIRE(program.arena_bytes == 128);
  REQUIRE(find_overlap(program) == std::pair{-1, -1});
  program.buffers[500].place = program.buffers[501].place;
  REQUIRE(find_overlap(program) == std::pair{499, 500});
}

TEST_CASE("buffers that share some bytes are found from either side", "[lives]") {
  Program program = plan_memory(chain(2));
  program.buffers[1].place = 0, program.buffers[2].place = 63;
  REQUIRE(find_overlap(program) == std::pair{1, 2});
  program.buffers[1].place = 63, program.buffers[2].place = 0;
  REQUIRE(find_overlap(program) == std::pair{1, 2});
  program.buffers[1].place = 64;
  REQUIRE(find_overlap(program) == std::pair{-1, -1});
}
