// A thousand mutated Programs; `build/fuzz 200000 1 programs` makes more.
#include "tests/fuzz/programs.h"

#include "tests/catch.h"
#include "tests/fuzz/mutate.h"

using namespace tiny_compile;

TEMPLATE_TEST_CASE_SIG("mutated programs are refused, or keep their bits and their bounds",
                       "[fuzz][refused]", ((int shard), shard), 0, 1, 2, 3) {
  use_no_cache();
  MutantCounts counts;
  for (const FuzzFailure& failure :
       fuzz_programs(1000000 + 256 * static_cast<uint64_t>(shard), 256, counts)) {
    UNSCOPED_INFO("seed " << failure.seed << ": " << failure.stage << "\n" << failure.text);
    CHECK(false);
  }
  CHECK(counts.made == 256);
  CHECK(counts.refused > 64);
  CHECK(counts.ran > 8);
}

TEST_CASE("a mutant is the same for the same seed", "[fuzz][refused]") {
  CHECK(mutant(17) == mutant(17));
  CHECK(mutated("store y[i0*4]\n", 3) == mutated("store y[i0*4]\n", 3));
}
