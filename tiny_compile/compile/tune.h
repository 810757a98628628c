// mode "max-autotune": each kernel's best schedules by the model are built, checked bit for bit and
// timed, and the fastest is taken.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/runtime/disk_cache.h"
#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {

struct TuneOptions {
  double seconds =
      10;            // for all kernels together, about; the costliest by the model come first
  size_t most = 16;  // candidates of a kernel
  std::string directory = cache_directory();    // where winners are remembered; "": nowhere
  std::function<void(const std::string&)> say;  // told what is going on, a line at a time
};

// What came of a kernel.
struct TunedKernel {
  std::string name;
  Schedule before, after;
  double gain = 1;       // before's time over after's; 1 where it was remembered
  size_t tried = 0;      // candidates that ran, its own among them; 0: see `note`
  size_t disproved = 0;  // whose bits were others: never taken, and a bug
  std::string note;      // "remembered", or why it was left as it was
  std::string str()
      const;  // "sum_1: 1.31 times as fast as rows with columns lanes=64, of 12 tried"
};

struct Tuned {
  Program program;
  std::vector<TunedKernel> kernels;
};

// A Program whose kernels have schedules, before memory is planned; on its device nothing else should run.
// Kernels of symbolic sizes, that write what they read, or that a library runs stay as they are.
Tuned tune(const Program& program, Device device, const TuneOptions& options = {});

// The pipeline with tune behind "schedule", where it has that stage.
Pipeline with_tuning(Pipeline pipeline, Device device, const TuneOptions& options = {});

// On stderr where that is a terminal, each line over the one before; else nothing.
std::function<void(const std::string&)> progress_on_terminal();

}  // namespace tiny_compile
