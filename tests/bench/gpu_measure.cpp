// How long does the device take? Two events around each call, many calls queued, the median.
//
// Calls follow one another without a pause, so that the host is ahead of the device; only where
// a call is shorter than its launch (a `tiny` row) a fill of 1 GiB before each keeps the device
// busy until the host has queued it.
#include "tests/bench/gpu_measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>

#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/runtime/disk_cache.h"
#include "tiny_compile/runtime/process.h"
#include "tiny_compile/tensor/cuda_memory.h"
#include "tiny_compile/tensor/memory_use.h"

namespace bench {
namespace {

namespace tc = tiny_compile;
using tc::Tensor;

constexpr size_t kPauseBytes = size_t{1} << 30;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

tc::CudaAddress address(const std::shared_ptr<tc::Storage>& storage) {
  return reinterpret_cast<tc::CudaAddress>(storage->data());
}

class Event {
 public:
  Event() : event_(tc::driver::create_event()) {}
  ~Event() { tc::driver::destroy_event(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(tc::CudaStream stream) const { tc::driver::record_event(event_, stream); }
  tc::CudaEvent get() const { return event_; }

 private:
  tc::CudaEvent event_;
};

std::vector<double> time_on_cpu(const std::function<void()>& call, int count) {
  std::vector<double> times;
  for (int i = 0; i < count; i++) {
    const double start = now();
    call();
    times.push_back((now() - start) * 1e3);
  }
  return times;
}

// `before` runs ahead of each call, outside what is timed.
std::vector<double> time_on_gpu(const Machine& machine, const std::function<void()>& before,
                                const std::function<void()>& call, int count) {
  const tc::CudaScope scope(machine.device.index);
  const tc::CudaStream stream = tc::cuda_stream(machine.device.index);
  std::vector<Event> starts(static_cast<size_t>(count)), stops(static_cast<size_t>(count));
  for (size_t i = 0; i < starts.size(); i++) {
    before();
    starts[i].record(stream);
    call();
    stops[i].record(stream);
  }
  machine.wait();
  std::vector<double> times;
  for (size_t i = 0; i < starts.size(); i++)
    times.push_back(tc::driver::milliseconds_between(starts[i].get(), stops[i].get()));
  return times;
}

std::vector<Tensor> make_inputs(const GpuRow& row, tc::Device device) {
  std::vector<Tensor> tensors;
  for (const Input& input : row.inputs) tensors.push_back(make_input(input, device));
  return tensors;
}

std::vector<Tensor> to_host(std::vector<Tensor> tensors) {
  for (Tensor& tensor : tensors) tensor = tc::on_host(tensor);
  return tensors;
}

void compare(const std::vector<Tensor>& want, const std::vector<Tensor>& got,
             const std::string& what) {
  for (size_t k = 0; k < want.size(); k++) {
    if (const auto at = tc::first_difference(want[k], got[k]))
      tc::fail(what, ": output ", k, " differs at element ", *at);
  }
}

int64_t bytes_of(const std::vector<Tensor>& tensors) {
  std::set<const tc::Storage*> seen;
  int64_t bytes = 0;
  for (const Tensor& tensor : tensors) {
    const tc::Storage* storage = tensor.info().storage.get();
    if (seen.insert(storage).second) bytes += static_cast<int64_t>(storage->bytes());
  }
  return bytes;
}

// What a process that has compiled before has open: the compiler, and the library of matmuls.
void compile_another(const Machine& machine) {
  const Tensor x = tc::ones({64, 64}).to(machine.device);
  tc::compile([](Tensor a) { return tc::matmul(a, a) + 1.0; }, machine.options())(x);
  machine.wait();
}

}  // namespace

double distance(const Tensor& want, const Tensor& got) {
  const std::vector<double> a = want.to_vector<double>(), b = got.to_vector<double>();
  double norm = 0, off = 0;
  for (size_t i = 0; i < a.size(); i++)
    norm += a[i] * a[i], off += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(off / norm);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

tc::CompileOptions Machine::options() const {
  tc::CompileOptions options;
  options.backend = is_gpu() ? "cuda" : "cpp";
  return options;
}

std::string Machine::name() const {
  if (is_gpu()) return tc::cuda_device(device.index).name;
  return small ? "CPU, small instances (a trial)" : "CPU";
}

void Machine::wait() const { tc::synchronize(device); }

std::vector<double> time_copies(const Machine& machine, int64_t bytes, int count) {
  const size_t size = static_cast<size_t>(machine.small ? bytes >> 10 : bytes);
  if (!machine.is_gpu()) {
    std::vector<char> from(size), to(size);
    return time_on_cpu([&] { std::copy(from.begin(), from.end(), to.begin()); }, count);
  }
  const int device = machine.device.index;
  const auto from = tc::allocate_cuda(size, device), to = tc::allocate_cuda(size, device);
  const tc::CudaScope scope(device);
  const tc::CudaStream stream = tc::cuda_stream(device);
  return time_on_gpu(
      machine, [] {},
      [&] { tc::driver::copy_on_device(address(to), address(from), size, stream); }, count);
}

LoadedRow::LoadedRow(const Machine& machine, const std::string& name, const RowMaker& make)
    : machine_(machine), make_(make), row_(make(name, machine.small)) {
  inputs_ = make_inputs(row_, machine.device);
  machine.wait();
  const auto timed = [&] {
    const double start = now();
    ready_.call();
    machine.wait();
    return (now() - start) * 1e3;
  };
  ready_ = row_.prepare(machine.options(), inputs_);
  const double cold = timed();
  compile_ms_ = cold - timed();
  first_ = to_host(ready_.results());
}

std::vector<int64_t> LoadedRow::input_checksums() const {
  std::vector<int64_t> sums;
  for (const Tensor& tensor : inputs_) sums.push_back(checksum(tensor));
  return sums;
}

int64_t LoadedRow::input_bytes() const { return bytes_of(inputs_); }

double LoadedRow::operations() const { return count_operations(ready_.graph()); }

int64_t LoadedRow::launches() const { return count_launches(cuda_source(ready_.graph())); }

void LoadedRow::check_small() const {
  const GpuRow small = make_(row_.name, true);
  const auto got =
      to_host(small.prepare(machine_.options(), make_inputs(small, machine_.device)).results());
  tc::CompileOptions options;
  options.backend = "interpreter";
  const auto want = small.prepare(options, make_inputs(small, tc::cpu)).results();
  const std::string what = row_.name + ", small, against the interpreter";
  if (small.exact) return compare(want, got, what);
  for (size_t k = 0; k < want.size(); k++) {
    const double off = distance(want[k], got[k]);
    if (!(off <= small.limit)) tc::fail(what, ": output ", k, " is off by ", off);
  }
}

bool LoadedRow::check_full() const {
  if (!row_.exact) return false;
  tc::CompileOptions options;
  options.backend = machine_.is_gpu() ? "cpp" : "interpreter";
  const auto want = row_.prepare(options, make_inputs(row_, tc::cpu)).results();
  compare(want, first_, tc::str(row_.name, ", against backend ", options.backend));
  return true;
}

void LoadedRow::check_last() const {
  if (last_.empty()) tc::fail(row_.name, ": its last timed result is no longer there");
  compare(first_, to_host(last_), row_.name + ", the last timed call against the first");
}

std::vector<double> LoadedRow::time_calls(int count) {
  last_.clear();
  ready_.call();
  ready_.call();
  std::vector<double> times;
  if (machine_.is_gpu()) {
    const int device = machine_.device.index;
    const auto pause = row_.tiny ? tc::allocate_cuda(kPauseBytes, device) : nullptr;
    const tc::CudaStream stream = tc::cuda_stream(device);
    const auto before = [&] {
      if (pause) tc::driver::fill_bytes(address(pause), 0, kPauseBytes, stream);
    };
    times = time_on_gpu(machine_, before, ready_.call, count);
  } else {
    times = time_on_cpu(ready_.call, count);
  }
  last_ = ready_.results();
  return times;
}

double LoadedRow::host_microseconds(int count) {
  last_.clear();
  ready_.call();
  machine_.wait();
  const double start = now();
  for (int i = 0; i < count; i++) ready_.call();
  const double spent = now() - start;
  machine_.wait();
  return spent / count * 1e6;
}

int64_t LoadedRow::peak_bytes() {
  last_.clear();
  ready_.call();  // what is made once (a module, a workspace) is there now
  machine_.wait();
  const int64_t before = tc::memory_use(machine_.device).bytes;
  tc::reset_peak_memory(machine_.device);
  const auto outputs = ready_.results();
  machine_.wait();
  return input_bytes() + tc::memory_use(machine_.device).peak - before;
}

// Startup ---------------------------------------------------------------------------------------

void start_child(const Machine& machine, const std::string& name, bool again) {
  const double start = now();
  const GpuRow row = make_gpu_row(name, machine.small);
  std::vector<Tensor> inputs;
  for (const Input& input : row.inputs) inputs.push_back(blank_input(input, machine.device));
  machine.wait();
  const double made = now();
  if (again) compile_another(machine);
  const double ready = now();
  const Ready function = row.prepare(machine.options(), inputs);
  function.call();
  machine.wait();
  const double first = now();
  function.call();
  machine.wait();
  std::printf("%.6f %.6f %.6f\n", (made - start) * 1e3, (first - ready) * 1e3,
              (now() - first) * 1e3);
}

Startup measure_startup(const Machine& machine, const std::string& self,
                        const std::string& name, int runs) {
  std::vector<double> driver, cold, warm, again;
  const auto start = [&](const std::string& cache, const char* how) {
    std::vector<std::string> command = {self, how, name};
    if (!machine.is_gpu()) command.push_back("--cpu");
    const tc::ProcessResult said =
        tc::run_process(command, "", 300, {"TC_CACHE_DIR=" + cache + "/cache"});
    double before = 0, first = 0, second = 0;
    if (std::sscanf(said.output.c_str(), "%lf %lf %lf", &before, &first, &second) != 3)
      tc::fail(name, ": the process that starts it said: ", said.output);
    driver.push_back(before);
    return first - second;
  };
  for (int run = 0; run < runs; run++) {
    const tc::TemporaryDirectory cache("/tmp");
    cold.push_back(start(cache.path(), "--start"));
    warm.push_back(start(cache.path(), "--start"));
    std::filesystem::remove_all(cache.path() + "/cache");
    again.push_back(start(cache.path(), "--start-again"));
    std::filesystem::remove_all(cache.path() + "/cache");
  }
  return {median(driver), median(cold), median(warm), median(again)};
}

}  // namespace bench
