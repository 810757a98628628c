// One row on one machine: checked, then measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/bench/gpu_rows.h"

namespace bench {

// The first GPU with backend "cuda"; or, to try the benchmark out without one, the CPU with
// small instances, backend "cpp" and a host clock in place of events.
struct Machine {
  tiny_compile::Device device = tiny_compile::cuda;
  bool small = false;

  bool is_gpu() const { return device.kind == tiny_compile::DeviceKind::Cuda; }
  tiny_compile::CompileOptions options() const;
  std::string name() const;  // "NVIDIA H200"
  void wait() const;         // for all work in the stream
};

// Milliseconds of each copy of `bytes` from device memory to device memory.
std::vector<double> time_copies(const Machine& machine, int64_t bytes, int count);

class LoadedRow {
 public:
  // Inputs made, compiled, run.
  LoadedRow(const Machine& machine, const std::string& name,
            const RowMaker& make = make_gpu_row);

  const GpuRow& row() const { return row_; }
  std::vector<int64_t> input_checksums() const;
  int64_t input_bytes() const;
  const std::vector<tiny_compile::Tensor>& outputs() const { return first_; }  // on the host
  double operations() const;
  int64_t launches() const;
  double compile_ms() const { return compile_ms_; }  // the first call less a second one

  // Each throws tc::Error naming the first element that differs.
  void check_small() const;  // a small instance: the interpreter's bits, or within row().limit
  // The C++ back end's bits on this instance, on a CPU the interpreter's; false where the contract
  // promises none.
  bool check_full() const;
  // The last of time_calls gave the first call's bits, also where a vendor's matmul is in it: the
  // same algorithm on the same inputs. What is measured next frees that result.
  void check_last() const;

  std::vector<double> time_calls(int count);  // device milliseconds of each
  double host_microseconds(int count);        // a call, while nobody waits for the device
  int64_t peak_bytes();  // inputs, outputs and all that a call needs between

 private:
  Machine machine_;
  RowMaker make_;
  GpuRow row_;
  double compile_ms_ = 0;
  std::vector<tiny_compile::Tensor> inputs_;
  Ready ready_;
  std::vector<tiny_compile::Tensor> first_, last_;
};

// Milliseconds from a first call to its result, less those of a second call.
struct Startup {
  double driver = 0;  // before: context and a first allocation
  double cold = 0;    // nothing in the disk cache
  double warm = 0;    // another process, from the disk cache
  double again = 0;   // nothing in the cache, but the process has compiled another function
};

// Medians of `runs` processes each. `self` is this program's path: {"--start", name}, or
// "--start-again" where the process compiles another function first, has to end in start_child.
Startup measure_startup(const Machine& machine, const std::string& self,
                        const std::string& name, int runs);
void start_child(const Machine& machine, const std::string& name,
                 bool again);  // prints "driver first second"

// |want - got| / |want| of all elements; NaN where either has one.
double distance(const tiny_compile::Tensor& want, const tiny_compile::Tensor& got);

double median(std::vector<double> values);

}  // namespace bench
