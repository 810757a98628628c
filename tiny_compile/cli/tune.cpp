// What does a search print? A program that `tc run` and `tc bench` obey, and what it gained:
//
//   # sum_1: columns lanes=64, 1.31 times as fast as rows unroll=8, the fastest of 12
//   program f { ...
#include "tiny_compile/cli/tune.h"

#include "tiny_compile/compile/tune.h"

namespace tiny_compile {

std::string tuned_text(const Program& scheduled, Device device, double seconds) {
  TuneOptions options;
  options.seconds = seconds;
  options.say = progress_on_terminal();
  const Tuned tuned = tune(scheduled, device, options);
  const std::string wrong = other_bits(tuned.kernels);
  if (!wrong.empty()) throw OtherBits(wrong);
  std::string text;
  for (const TunedKernel& kernel : tuned.kernels) text += "# " + kernel.str() + "\n";
  return text + print(plan_memory(tuned.program));
}

}  // namespace tiny_compile
