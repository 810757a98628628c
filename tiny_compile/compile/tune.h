// mode "max-autotune": each kernel's best schedules by the model are built, checked bit for bit and
// timed, and the fastest is taken.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/runtime/build.h"
#include "tiny_compile/runtime/disk_cache.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

struct TuneOptions {
  double seconds =
      10;            // for all kernels together, about; the costliest by the model come first
  size_t most = 24;  // candidates of a kernel
  std::string directory = cache_directory();    // where winners are remembered; "": nowhere
  std::function<void(const std::string&)> say;  // told what is going on, a line at a time
  // Who builds a candidate for the device of that index: tests spoil one.
  std::function<Built(const Program&, const Source&, int)> builder =
      [](const Program& program, const Source& source, int device) {
        return build(program, source, device);
      };
};

// What came of a kernel.
struct TunedKernel {
  std::string name;
  Schedule before, after;
  double gain = 1;                    // before's time over after's; 1 where it was remembered
  size_t tried = 0;                   // candidates that ran, its own among them; 0: see `note`
  std::vector<Schedule> disproved{};  // whose bits were others: never taken, and a bug
  std::string whose{};                // bits they were compared with: "the interpreter's"
  std::string note{};                 // "remembered", or why it was left as it was
  // "sum_1: columns lanes=64, 1.31 times as fast as rows, the fastest of 12 with the interpreter's bits"
  std::string str() const;
};

struct Tuned {
  Program program;
  std::vector<TunedKernel> kernels;
};

// A Program whose kernels have schedules, before memory is planned; on its device nothing else should run.
// Kernels of symbolic sizes, or that write what they read, stay as they are. What had
// a candidate of other bits is not remembered, so that it is told of again.
Tuned tune(const Program& program, Device device, const TuneOptions& options = {});

// What to tell where candidates gave other bits: kernels and schedules by name; "" where none did.
std::string other_bits(const std::vector<TunedKernel>& kernels);

// The pipeline with tune behind "schedule", where it has that stage.
Pipeline with_tuning(Pipeline pipeline, Device device, const TuneOptions& options = {});

// On stderr where that is a terminal, each line over the one before; else nothing.
std::function<void(const std::string&)> progress_on_terminal();

}  // namespace tiny_compile
