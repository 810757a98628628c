// fuzz N [seed] [loops|cuda|threads]: N random graphs; the generated C++, after the whole pipeline
// and after a random prefix of it, must give the interpreter's bits and keep to its buffers. With
// `loops` the Program's own interpreter runs instead, after every stage: no compiler, far faster.
// With `cuda` the generated CUDA runs on the first GPU, with `threads` thread by thread on the CPU.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "tests/fuzz/harness.h"

namespace {

using namespace tiny_compile;

constexpr int kUnit = 24;  // programs compiled together

int run_unit(uint64_t first, int count, const std::string& how) {
  try {
    const auto failures = how == "loops"     ? fuzz_loops(first, count)
                          : how == "cuda"    ? fuzz_cuda(first, count)
                          : how == "threads" ? fuzz_threads(first, count)
                                             : fuzz_cpp(first, count);
    for (const FuzzFailure& failure : failures) {
      std::printf("MISMATCH: seed %llu, stage %s\n%s\n",
                  static_cast<unsigned long long>(failure.seed), failure.stage.c_str(),
                  failure.text.c_str());
      std::fflush(stdout);
    }
    return static_cast<int>(failures.size());
  } catch (const std::exception& error) {
    std::printf("ERROR: seeds from %llu: %s\n", static_cast<unsigned long long>(first),
                error.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 300;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const std::string how = argc > 3 ? argv[3] : "cpp";
  use_no_cache();
  int bad = 0;
  for (int done = 0; done < count; done += kUnit) {
    bad += run_unit(seed + static_cast<uint64_t>(done), std::min(kUnit, count - done), how);
    if (isatty(2))
      std::fprintf(stderr, "\r%d / %d graphs, %d bad", std::min(count, done + kUnit), count,
                   bad);
  }
  std::printf("%d graphs, %d bad\n", count, bad);
  return bad ? 1 : 0;
}
