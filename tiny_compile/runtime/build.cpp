// Who compiles a source, and what runs it? The target decides; callers need not know.
#include "tiny_compile/runtime/build.h"

#include <algorithm>
#include <cctype>

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
  const BuiltCubins code = build_cuda(source, gpu.architecture);
  Built built{{}, code.from_cache, code.compile_seconds};
  const auto executable = std::make_shared<const CudaExecutable>(
      program, source, load_cubins(code.cubins, device), uses);
  built.run = [executable](std::span<const Tensor> inputs) { return executable->run(inputs); };
  return built;
}

// Throws where kernels ask for more than the GPU has, which the compiler or the driver would refuse
// in words that name no machine.
void require_room(const Source& source, const CudaDevice& gpu, const Machine& made_for) {
  const bool fits =
      std::all_of(source.kernels.begin(), source.kernels.end(),
                  [&](const KernelEntry& entry) { return entry.shared <= gpu.shared_bytes; });
  const bool clusters = source.text.find("__cluster_dims__") != std::string::npos;
  if (fits && (gpu.clusters || !clusters)) return;
  fail("the program is for ", made_for.name, ", which has more ",
       fits ? "clusters" : "shared memory", " than ", gpu.name,
       ": compile it for machine_on(cuda)");
}

Built build_for_cuda(const Program& program, const Source& source, int device,
                     const std::vector<IndexUse>& uses) {
  const CudaDevice& gpu = cuda_device(device);
  if (std::stoi(gpu.architecture.substr(3)) < kOldest)
    fail("cuda:", device, ", ", gpu.name, ", is ", gpu.architecture,
         ": generated CUDA is for sm_", kOldest, " and later. Use the CPU: backend \"cpp\"");
  require_room(source, gpu, program.machine);
  return load_on(gpu, device, program, source, uses);
}

// "NVIDIA H200" => nvidia_h200
std::string word_of(std::string name) {
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? std::tolower(c) : '_';
  return name;
}

// NVIDIA's white papers: of each architecture what one has whose sums are f32.
int64_t products_of(const std::string& architecture) {
  if (architecture == "sm_90") return 2048;
  if (architecture == "sm_80") return 1024;
  return architecture == "sm_86" || architecture == "sm_89" ? 256 : 0;
}

}  // namespace

Machine machine_on(Device device) {
  if (device == cpu) return this_cpu();
  constexpr int64_t kThreadRegisters = 255, kCluster = 8;  // the driver has no words for these
  const CudaDevice& gpu = cuda_device(device.index);
  return as_preset({.name = word_of(gpu.name),
                    .multiprocessors = gpu.multiprocessors,
                    .threads = gpu.threads,
                    .registers = gpu.registers,
                    .blocks = gpu.blocks,
                    .thread_registers = kThreadRegisters,
                    .block_shared = gpu.shared_bytes,
                    .shared = gpu.all_shared_bytes,
                    .cluster = gpu.clusters ? kCluster : 1,
                    .bandwidth = int64_t{gpu.memory_clock} * gpu.memory_bits / 4'000'000,
                    .clock = gpu.clock / 1000,
                    .products = products_of(gpu.architecture),
                    .l2 = gpu.l2_bytes});
}

Program on_device(Program program, Device device) {
  const bool chosen = program.machine != default_machine(program.target);
  if (chosen && program.target == target_of(device)) return program;
  return for_machine(std::move(program), machine_on(device));
}

Built build(const Program& program, const Source& source, int device,
            const std::vector<IndexUse>& uses) {
  return program.target == Target::Cuda ? build_for_cuda(program, source, device, uses)
                                        : build_for_cpu(program, source);
}

}  // namespace tiny_compile
