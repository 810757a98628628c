// make shapes: a small convolutional network learns to name drawn shapes, in under a minute.
#include <cstdio>

#include "tiny_compile/cli/shapes.h"

namespace tc = tiny_compile;

int main() {
  try {
    const tc::ShapesOptions options;
    std::printf("step   loss\n");
    const auto watch = [](int64_t step, double loss) {
      if (step == 1 || step % 10 == 0)
        std::printf("%4d   %.3f\n", static_cast<int>(step), loss);
      std::fflush(stdout);
    };
    const tc::TrainedShapes trained = tc::train_on_shapes(options, watch);
    const double share = tc::accuracy_on(trained, tc::draw_shapes(0, 1000));
    std::printf("of 1000 other pictures, %.1f %% are named right\n", 100 * share);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "shapes: %s\n", error.what());
    return 1;
  }
}
