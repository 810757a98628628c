// What must be equal for a winner to be taken without a race? An entry is the kernel's own text with the
// schedule that won, under the hash of all that the race depended on:
//
//   program alone {
//     input b0: f32[4194304]
//     output b1: f32[4194304]
//     kernel k rows(i0: 4194304) { store b1[i0] = exp(load b0[i0])    schedule pointwise grain=4096 }
//   }
//
// It is parsed and verified like any other text, so that nothing in a file can do harm.
#include "tiny_compile/compile/tune_memory.h"

#include <omp.h>

#include <algorithm>
#include <string_view>

#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/loops/kernel_key.h"
#include "tiny_compile/runtime/build.h"
#include "tiny_compile/runtime/cpp_toolchain.h"
#include "tiny_compile/runtime/cublaslt.h"
#include "tiny_compile/runtime/disk_cache.h"
#include "tiny_compile/tile/lower.h"

namespace tiny_compile {
namespace {

constexpr const char* kVersion = "1";  // of how races are run
constexpr std::string_view kEnd = "\n}\n";

Program without_schedule(Program alone) {
  alone.kernels[0].schedule.reset();
  return alone;
}

std::string who_runs(const Program& alone, Device device) {
  const std::string machine = str(machine_on(device));
  const bool asks = alone.matmul != Matmul::Generated && why_no_cublaslt().empty();
  if (device != cpu) return machine + (asks ? " " + cublaslt_identity() : "");
  return str(machine, " ", omp_get_max_threads(), " threads ", default_toolchain().identity);
}

}  // namespace

std::optional<Program> kernel_alone(const Program& program, const Kernel& kernel) {
  const LoneKernel lone = lone_kernel(program, kernel);
  Program alone = lone.program;
  Kernel& own = alone.kernels[0];
  alone.name = "alone";
  own.name = "k";
  own.where.clear();
  own.again = 0;
  if (!sizes(alone).empty()) return std::nullopt;
  const std::vector<bool> read = buffers_read(alone, own),
                          written = buffers_written(alone, own);
  for (size_t b = 0; b < alone.buffers.size(); b++) {
    const Buffer& given = program.buffers[lone.buffers[b]];
    const bool has_gaps = !(given.size == product(given.type.shape));
    if (written[b] && (read[b] || has_gaps)) return std::nullopt;
    alone.buffers[b].name = str("b", b);
    alone.buffers[b].role = written[b] ? Role::Output : Role::Input;
    if (written[b]) alone.outputs.push_back(static_cast<int>(b));
  }
  return alone;
}

std::string tune_key(const Program& alone, Device device) {
  return content_key({{"tuned", kVersion},
                      {"kernel", print(without_schedule(alone))},
                      {"policy", emit(lower_to_tiles(alone)).text},
                      {"machine", who_runs(alone, device)}});
}

std::optional<Schedule> remembered_schedule(const std::string& directory,
                                            const std::string& key, const Program& alone) {
  const std::optional<std::string> path =
      directory.empty() ? std::nullopt : find_cached(directory, key);
  if (!path) return std::nullopt;
  try {
    const std::string content = read_file(*path);  // behind the text stands its hash
    const Program kept = parse_program(content.substr(0, content.find(kEnd) + kEnd.size()));
    const bool same =
        kept.kernels.size() == 1 && without_schedule(kept) == without_schedule(alone);
    return same ? kept.kernels[0].schedule : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void remember_schedule(const std::string& directory, const std::string& key, Program alone,
                       const Schedule& schedule) {
  alone.kernels[0].schedule = schedule;
  if (!directory.empty()) store_text(directory, key, print(alone));
}

}  // namespace tiny_compile
