// Who compiles a source, and what runs it? The target decides; callers need not know.
#include "tiny_compile/runtime/build.h"

#include "tiny_compile/codegen/cuda.h"
#include "tiny_compile/runtime/cuda_executable.h"
#include "tiny_compile/runtime/executable.h"

namespace tiny_compile {
namespace {

constexpr int kOldest = 80;  // min.NaN and packed conversions of halves are as old as that

Built build_for_cpu(const Program& program, const Source& source) {
  BuiltLibrary library = build_cpp(source.text, default_toolchain(), source.units);
  Built built{{}, library.from_cache, library.compile_seconds};
  const auto executable = std::make_shared<const Executable>(program, source, library);
  built.run = [executable](std::span<const Tensor> inputs) { return executable->run(inputs); };
  return built;
}

Built load_on(const CudaDevice& gpu, int device, const Program& program, const Source& source,
              const std::vector<IndexUse>& uses) {
  const BuiltCubin cubin = build_cuda(source.text, gpu.architecture);
  Built built{{}, cubin.from_cache, cubin.compile_seconds};
  const auto executable = std::make_shared<const CudaExecutable>(
      program, source, load_cubin(cubin.cubin, device), uses);
  built.run = [executable](std::span<const Tensor> inputs) { return executable->run(inputs); };
  return built;
}

// The emitter's source is for the largest GPUs; a smaller one gets another.
Built build_for_cuda(const Program& program, const Source& source, int device,
                     const std::vector<IndexUse>& uses) {
  const CudaDevice& gpu = cuda_device(device);
  if (std::stoi(gpu.architecture.substr(3)) < kOldest)
    fail("cuda:", device, ", ", gpu.name, ", is ", gpu.architecture,
         ": generated CUDA is for sm_", kOldest, " and later. Use the CPU: backend \"cpp\"");
  const auto other = fitted_to(program, source, {gpu.clusters, gpu.shared_bytes});
  return other ? load_on(gpu, device, other->first, other->second, uses)
               : load_on(gpu, device, program, source, uses);
}

}  // namespace

Built build(const Program& program, const Source& source, int device,
            const std::vector<IndexUse>& uses) {
  return program.target == Target::Cuda ? build_for_cuda(program, source, device, uses)
                                        : build_for_cpu(program, source);
}

}  // namespace tiny_compile
