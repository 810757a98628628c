// The CUDA driver: its entry points, opened at run time, and this machine's GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tiny_compile {

// Handles as cuda.h has them; null where there is none.
using CudaContext = struct CUctx_st*;
using CudaStream = struct CUstream_st*;
using CudaModule = struct CUmod_st*;
using CudaFunction = struct CUfunc_st*;
using CudaEvent = struct CUevent_st*;
using CudaGraph = struct CUgraphExec_st*;  // that can be launched
using CudaAddress = unsigned long long;

// "" where GPUs can be used, else which of driver and GPU is missing and what was tried, or that
// the process was forked from one that had used them.
std::string why_no_cuda();
int cuda_device_count();  // 0 where none can be used

struct CudaDevice {
  std::string name;          // "NVIDIA H200"
  std::string architecture;  // "sm_90"
  int multiprocessors = 0;
  int threads = 0, registers = 0;  // of a multiprocessor
  int blocks = 0;                  // that it holds at most
  bool clusters = false;           // sm_90: blocks can share memory, kernels be started early
  int shared_bytes = 0;            // of memory that a block can have
  int all_shared_bytes = 0;        // that a multiprocessor has
  int l2_bytes = 0;
  int clock = 0, memory_clock = 0;  // kHz; 0 where the driver does not say, as the next
  int memory_bits = 0;              // that come at once, twice in a clock
  CudaContext context = nullptr;    // the device's primary context
};

// Throws tc::Error where CUDA is missing (saying what) or there is no such device.
const CudaDevice& cuda_device(int index);

// The entry points that are used. Each throws tc::Error with the driver's words on failure;
// `what` says what was being done. All need the device's context: see CudaScope.
namespace driver {
CudaAddress allocate(size_t bytes);  // 0 where there is no memory left
void free(CudaAddress address) noexcept;
void* allocate_host(size_t bytes);  // memory of the host that stays where it is
void copy_to_device(CudaAddress to, const void* from, size_t bytes, CudaStream stream);
void copy_to_host(void* to, CudaAddress from, size_t bytes, CudaStream stream);  // waits
// `to` is of allocate_host.
void start_copy_to_host(void* to, CudaAddress from, size_t bytes, CudaStream stream);
void copy_on_device(CudaAddress to, CudaAddress from, size_t bytes, CudaStream stream);
void fill_bytes(CudaAddress to, unsigned char value, size_t bytes, CudaStream stream);
void synchronize(CudaStream stream);
void memory(size_t& free, size_t& total);
CudaModule load_module(const std::string& cubin);
void unload_module(CudaModule module) noexcept;
bool has_function(CudaModule module, const std::string& name);
CudaFunction find_function(CudaModule module, const std::string& name);
CudaAddress find_global(CudaModule module, const std::string& name);  // 0 where it has none
void allow_shared(CudaFunction function, int64_t bytes);  // launches with so many, once before
// `early`: while the kernel before it still runs, if that lets it (of devices with clusters): what was
// written before, it may read only where it has waited itself.
void launch(CudaFunction function, int64_t grid, int block, int64_t shared, CudaStream stream,
            void** arguments, bool early = false);
int64_t launches();  // that the driver has taken from this process, or recorded
CudaStream create_stream();
void destroy_stream(CudaStream stream) noexcept;
// What is put into the stream from now on becomes a graph and does not run; false where that
// cannot be. Null at its end where something in it cannot be part of a graph.
bool begin_recording(CudaStream stream);
CudaGraph end_recording(CudaStream stream);
bool is_recording(CudaStream stream);
void launch_graph(CudaGraph graph, CudaStream stream);
void destroy_graph(CudaGraph graph) noexcept;  // null: nothing; at the end of what runs of it
CudaEvent create_event(bool timed = true);
void destroy_event(CudaEvent event) noexcept;
void record_event(CudaEvent event, CudaStream stream);
void wait_for_event(CudaStream stream, CudaEvent event);
void synchronize_event(CudaEvent event);
float milliseconds_between(CudaEvent start, CudaEvent stop);
}  // namespace driver

// Makes a device current on this thread while it lives.
class CudaScope {
 public:
  explicit CudaScope(int device);
  ~CudaScope();
  CudaScope(const CudaScope&) = delete;
  CudaScope& operator=(const CudaScope&) = delete;

 private:
  CudaContext before_ = nullptr;  // null: none, or the device's own
};

}  // namespace tiny_compile
