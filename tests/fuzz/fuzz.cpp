// fuzz N [seed] [cpp|loops|cuda|threads|layouts|sizes|sizes-cpp|sizes-cuda|sizes-threads]
// [gradients|twins]: N random graphs, their gradients, or
// two of each side by side (neither of sizes); the generated C++, after the whole pipeline
// and after a random prefix of it, must give the interpreter's bits and keep to its buffers. With
// `loops` the Program's own interpreter runs instead, after every stage: no compiler, far faster.
// With `cuda` the generated CUDA runs on the first GPU, with `threads` thread by thread on the CPU.
// With `layouts` kernels have random layouts (layouts.h) and run as tile programs, interpreted; with
// `layouts-threads` and `layouts-cuda` their text runs like that of `threads` and `cuda`.
// With `sizes` each size of a graph in turn becomes symbolic (symbolic.h), without a compiler too;
// with `sizes-cpp` its C++, compiled once, runs for some numbers, with `sizes-cuda` and `sizes-threads`
// its CUDA like that of `cuda` and `threads`.
//
// fuzz N [seed] programs|programs-cuda: N mutated Programs instead (programs.h). Each unit runs in
// a process of its own, so that a stray access is told with its seed. Runs of disjoint seeds may
// go side by side; a run that was stopped goes on from the seed that it showed last.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "tests/fuzz/harness.h"
#include "tests/fuzz/layouts.h"
#include "tests/fuzz/programs.h"
#include "tests/fuzz/symbolic.h"

namespace {

using namespace tiny_compile;

constexpr int kUnit = 24;  // programs compiled together

int run_unit(uint64_t first, int count, const std::string& how, const GraphMaker& make) {
  try {
    SymbolicCounts counts;
    const auto run = how == "loops"             ? fuzz_loops
                     : how.ends_with("cuda")    ? fuzz_cuda
                     : how.ends_with("threads") ? fuzz_threads
                                                : fuzz_cpp;
    const bool lays_out = how.starts_with("layouts");
    const auto failures =
        how == "sizes"           ? fuzz_symbolic(first, count, counts)
        : how == "sizes-cpp"     ? fuzz_symbolic_cpp(first, count, counts)
        : how == "sizes-cuda"    ? fuzz_symbolic_cuda(first, count, counts)
        : how == "sizes-threads" ? fuzz_symbolic_threads(first, count, counts)
        : how == "layouts"
            ? fuzz_layouts(first, count, make)
            : run(first, count, lays_out ? layouts_pipeline() : default_pipeline(), make);
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

// --- mutated programs -------------------------------------------------------------------------

constexpr int kMutants = 160;

struct Progress {  // shared with the process that does the work
  uint64_t seed = 0;
  int64_t bad = 0;
  MutantCounts counts;
};

void report(const FuzzFailure& failure) {
  std::printf("MISMATCH: seed %llu: %s\n%s\n", static_cast<unsigned long long>(failure.seed),
              failure.stage.c_str(), failure.text.c_str());
  std::fflush(stdout);
}

void run_mutants(uint64_t first, int count, bool on_gpu, const std::set<uint64_t>& skip,
                 Progress& shared) {
  MutantCounts counts;
  const auto begin = [&](uint64_t seed) { shared.seed = seed; };
  const auto failures = on_gpu ? fuzz_programs_cuda(first, count, counts, skip, begin)
                               : fuzz_programs(first, count, counts, skip, begin);
  for (const FuzzFailure& failure : failures) report(failure);
  MutantCounts& all = shared.counts;
  all.made += counts.made, all.refused += counts.refused, all.too_large += counts.too_large;
  all.raised += counts.raised, all.ran += counts.ran;
  shared.bad += static_cast<int64_t>(failures.size());
}

// Again without the mutant that the process died of, until it dies no more.
void run_mutants_apart(uint64_t first, int count, bool on_gpu, Progress& shared) {
  std::set<uint64_t> skip;
  while (true) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      try {
        run_mutants(first, count, on_gpu, skip, shared);
      } catch (const std::exception& error) {
        report({shared.seed, error.what(), ""});
        shared.bad++;
      }
      std::fflush(stdout);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    if (!skip.insert(shared.seed).second) return;
    shared.bad++, shared.counts.made++;
    report({shared.seed, "the process died", mutant(shared.seed)});
  }
}

int run_programs(int count, uint64_t seed, bool on_gpu) {
  auto* shared = static_cast<Progress*>(mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE,
                                             MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  *shared = Progress{};
  const MutantCounts& counts = shared->counts;
  for (int done = 0; done < count; done += kMutants) {
    run_mutants_apart(seed + static_cast<uint64_t>(done), std::min(kMutants, count - done),
                      on_gpu, *shared);
    if (done / kMutants % 10 == 9 || isatty(2))
      std::fprintf(stderr, "\r%lld made, %lld refused, %lld ran, %lld bad; next seed %llu",
                   static_cast<long long>(counts.made), static_cast<long long>(counts.refused),
                   static_cast<long long>(counts.ran), static_cast<long long>(shared->bad),
                   static_cast<unsigned long long>(seed) + done + kMutants);
  }
  std::printf(
      "%lld mutants: %lld refused, %lld not run (too large, or for the other target), %lld "
      "raised, "
      "%lld ran, %lld bad\n",
      static_cast<long long>(counts.made), static_cast<long long>(counts.refused),
      static_cast<long long>(counts.too_large), static_cast<long long>(counts.raised),
      static_cast<long long>(counts.ran), static_cast<long long>(shared->bad));
  return shared->bad ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 300;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const std::string how = argc > 3 ? argv[3] : "cpp";
  use_no_cache();
  if (how == "programs" || how == "programs-cuda")
    return run_programs(count, seed, how == "programs-cuda");
  const std::string what = argc > 4 ? argv[4] : "";
  const GraphMaker make = what == "gradients" ? GraphMaker(random_gradient)
                          : what == "twins"   ? GraphMaker(random_twins)
                                              : any_graph;
  int bad = 0;
  for (int done = 0; done < count; done += kUnit) {
    bad +=
        run_unit(seed + static_cast<uint64_t>(done), std::min(kUnit, count - done), how, make);
    if (isatty(2))
      std::fprintf(stderr, "\r%d / %d graphs, %d bad", std::min(count, done + kUnit), count,
                   bad);
  }
  std::printf("%d graphs, %d bad\n", count, bad);
  return bad ? 1 : 0;
}
