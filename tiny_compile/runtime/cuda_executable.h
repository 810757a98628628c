// A Program whose kernels are loaded on a GPU: device tensors in, device tensors out.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tiny_compile/codegen/cuda.h"
#include "tiny_compile/codegen/cuda_group.h"
#include "tiny_compile/runtime/buffers.h"
#include "tiny_compile/runtime/call_plan.h"
#include "tiny_compile/runtime/cublaslt.h"
#include "tiny_compile/runtime/cuda_errors.h"
#include "tiny_compile/runtime/cuda_replay.h"
#include "tiny_compile/tensor/cuda_driver.h"

namespace tiny_compile {

// The CUBINs of a source's units, loaded on one device; unloaded when the last owner goes.
class CudaLibrary {
 public:
  CudaLibrary(const std::vector<std::string>& cubins, int device);
  CudaFunction function(const std::string& name, int64_t shared = 0) const;
  int device() const { return device_; }
  bool has_errors() const { return errors_ != nullptr; }  // a user's kernels may have none
  CudaErrors& errors() const { return *errors_; }

 private:
  struct Unload {
    int device;
    void operator()(CudaModule module) const noexcept;
  };

  std::vector<std::unique_ptr<CUmod_st, Unload>> modules_;
  int device_;
  std::unique_ptr<CudaErrors> errors_;
};

// Loaded once a device, while anybody holds them.
std::shared_ptr<const CudaLibrary> load_cubins(const std::vector<std::string>& cubins,
                                               int device);

struct BuiltCubins {
  std::vector<std::string> cubins;  // of each unit
  bool from_cache = false;
  double compile_seconds = 0;
};

// NVRTC, behind the disk cache, for all units side by side.
BuiltCubins build_cuda(const Source& source, const std::string& architecture);

class CudaExecutable {
 public:
  CudaExecutable(const Program& program, const Source& source,
                 std::shared_ptr<const CudaLibrary> library, std::vector<IndexUse> uses = {});

  // Launches on cuda_stream(device) and returns without waiting. What kernels found wrong (an
  // index out of range, an integer division by zero) is thrown when a result is read, or one of
  // those made of it.
  std::vector<Tensor> run(std::span<const Tensor> inputs) const;

 private:
  struct Kernel {
    CudaFunction function = nullptr;
    Start start;
  };

  void prepare(const Program& program, const Source& source);
  bool add_calls(const KernelEntry& kernel);
  std::shared_ptr<Storage> make_workspace(const std::vector<void*>& addresses) const;
  void start(const std::vector<void*>& addresses, void* workspace) const;
  void start(const CallPlan& plan, const std::vector<void*>& addresses) const;
  void start_call(const std::vector<void*>& addresses, void* workspace, const CallPlan* sized,
                  bool has_outcome) const;
  void start_kernel(CudaFunction function, int64_t grid, const KernelEntry& entry,
                    const void** arguments, bool behind) const;
  std::vector<Tensor> run(const BufferPlan& plan, std::span<const Tensor> inputs,
                          const CallPlan* sized) const;

  const std::string& name() const { return maker_->name; }

  std::shared_ptr<const std::string> text_;  // the kernels' source, for messages
  const CudaMaker* maker_;
  std::shared_ptr<const CalledProgram> called_;
  std::shared_ptr<const CudaLibrary> library_;
  std::vector<KernelEntry> entries_;                          // of each kernel of the Program
  std::vector<std::variant<Kernel, CublasMatmul>> launches_;  // in order
  BufferPlan plan_;                                           // of a program of numbers
  std::unique_ptr<const CallPlans> plans_;  // of one of symbolic sizes, and its kernels
  std::map<std::string, CudaFunction> functions_;
  bool can_fail_;
  bool starts_early_;                   // a kernel while another still runs: the device can
  std::unique_ptr<CudaReplay> replay_;  // null where a launch is shorter than its kernel
};

}  // namespace tiny_compile
