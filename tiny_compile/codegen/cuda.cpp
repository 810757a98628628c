// How does a Program become CUDA C? Each kernel by the family its schedule names; then the
// helpers and the part of the prelude that the text mentions are put before it. A matmul that
// is the library's is a line that says so. What many threads cannot share (a scan across memory, a
// scatter with an index for each column, a load of what the row stored) goes to one thread.
//
// A kernel that differs from an earlier one in names alone (the layers of a network) is that
// function again, called with other buffers; its text is not repeated:
//
//   // gpt2.cpp:57
//   // also k_matmul_326, k_matmul_426
//   extern "C" __global__ void k_matmul_222(const tc_bf16* __restrict__ tmp_t181, ...
#include "tiny_compile/codegen/cuda.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <span>

#include "tiny_compile/codegen/cuda_columns.h"
#include "tiny_compile/codegen/cuda_fold.h"
#include "tiny_compile/codegen/cuda_helpers.h"
#include "tiny_compile/codegen/cuda_matmul.h"
#include "tiny_compile/codegen/cuda_pointwise.h"
#include "tiny_compile/codegen/cuda_rows.h"
#include "tiny_compile/codegen/cuda_scan.h"
#include "tiny_compile/codegen/cuda_scatter.h"
#include "tiny_compile/codegen/cuda_serial.h"
#include "tiny_compile/codegen/cuda_staged.h"
#include "tiny_compile/codegen/cuda_turned.h"
#include "tiny_compile/codegen/prelude.h"
#include "tiny_compile/codegen/scan.h"
#include "tiny_compile/codegen/single_rows.h"
#include "tiny_compile/loops/library_sums.h"

namespace tiny_compile {
namespace {

constexpr const char* kHead = R"(#define TC_FN static __device__ inline
#define TC_FAIL(code) atomicOr(&tc_error_word, code)
__device__ unsigned tc_error_word = 0;
)";

std::string function_name(const Kernel& kernel) {
  std::string name = kernel.name;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return "k_" + name;
}

// See tc_minus_zero.
std::string hide_minus_zero(std::string text) {
  auto replace = [&](const std::string& literal, const std::string& call) {
    for (size_t at = 0; (at = text.find(literal, at)) != std::string::npos; at += call.size())
      text.replace(at, literal.size(), call);
  };
  replace("(-0x0p+0f)", "tc_minus_zero()");
  replace("(-0x0p+0)", "(double)tc_minus_zero()");
  return text;
}

KernelEntry write_family(CudaText& text, const Program& program, const std::string& function) {
  const Kernel& kernel = text.kernel;
  const Strategy strategy = folds_rows(kernel) ? Strategy::Rows : kernel.schedule.strategy;
  if (strategy == Strategy::Tiles) return write_cuda_matmul(text, function);
  if (strategy == Strategy::Pointwise && is_transposed(kernel))
    return write_cuda_transposed(text, function);
  if (strategy == Strategy::Pointwise) return write_cuda_pointwise(text, function);
  if (scans_along_memory(program, kernel)) return write_cuda_scan(text, function);
  if (scatters_rows(text)) return write_cuda_scatter(text, function);
  if (!is_cooperative(program, kernel)) return write_cuda_serial(text, function);
  if (strategy == Strategy::Columns && !goes_in_strips(text))
    return write_cuda_columns(text, function);
  return fits_cuda_rows(kernel) ? write_cuda_rows(text, function)
                                : write_cuda_serial(text, function);
}

// The text with its own name and its buffers' names numbered, those inside other names
// (pack_tmp_t3) as well: equal for kernels that do the same to different buffers.
std::string without_names(const std::string& text, const KernelEntry& entry,
                          const Program& program) {
  std::map<std::string_view, std::string> numbers = {{entry.function, "@"}};
  std::vector<std::string> names;
  for (int b : entry.buffers) names.push_back(pointer_name(program.buffers[b]));
  for (size_t k = 0; k < names.size(); k++) numbers[names[k]] = str("@", k);
  auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  constexpr std::string_view kPack = "pack_";
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_word(text[end])) end++;
    std::string_view word(text.data() + at, std::max(end, at + 1) - at);
    at += word.size();
    if (word.starts_with(kPack)) {
      result += kPack;
      word.remove_prefix(kPack.size());
    }
    const auto number = numbers.find(word);
    result += number == numbers.end() ? word : number->second;
  }
  return result;
}

// The functions of a source in the making, each once.
class Functions {
 public:
  KernelEntry add(const Program& program, const Kernel& kernel, const LibraryCall& call,
                  const std::string& suffix) {
    const std::string function = function_name(kernel) + suffix;
    KernelEntry entry;
    entry.function = function;
    entry.grid = 0;
    if (row_count(kernel).is_constant(0)) return entry;
    if (call.matmul) {
      entry.library = call.matmul;
      entry.sums = call.sums;
      std::string line = "// the library: " + str(*call.matmul) + "\n";
      if (call.sums >= 0)
        line += str("// or without sums, which ", function_name(program.kernels[call.sums]),
                    suffix, " makes then\n");
      written_.push_back({comment_of(kernel), {}, line});
      return entry;
    }
    const std::optional<Kernel> points = as_points(program, kernel);
    CudaText text(program, points ? *points : kernel);
    entry = write_family(text, program, function);
    const auto [known, is_new] = known_.insert(
        {without_names(text.out.str(), entry, program), static_cast<int>(written_.size())});
    if (is_new) {
      written_.push_back({comment_of(kernel), {function}, text.out.str()});
    } else {
      written_[known->second].users.push_back(function);
      entry.function = written_[known->second].users[0];
    }
    return entry;
  }

  std::string text() const {
    std::string all;
    for (const Written& one : written_) {
      all += "\n" + one.comment;
      if (one.users.size() > 1)
        all += str("// also ", join(std::span(one.users).subspan(1), ", "), "\n");
      all += one.text;
    }
    return all;
  }

 private:
  struct Written {
    std::string comment;
    std::vector<std::string> users;  // the kernels it serves; it is named after the first
    std::string text;
  };
  std::vector<Written> written_;
  std::map<std::string, int> known_;  // text without names -> which of them
};

}  // namespace

bool fit_to(Program& program, const GpuLimits& limits) {
  constexpr int kBesides = 7;  // kilobytes: what a kernel shares by other names
  const int shared = static_cast<int>(limits.shared_bytes / 1024) - kBesides;
  bool changed = false;
  for (Kernel& kernel : program.kernels) {
    const Schedule before = kernel.schedule;
    if (!limits.clusters) kernel.schedule.cluster = 1;
    kernel.schedule.shared = std::min(kernel.schedule.shared, shared);
    changed = changed || !(kernel.schedule == before);
  }
  return changed;
}

std::optional<std::pair<Program, Source>> fitted_to(const Program& program,
                                                    const Source& source,
                                                    const GpuLimits& limits) {
  Program fitted = program;
  if (!fit_to(fitted, limits) || source.text != emit_cuda(program).text) return std::nullopt;
  Source other = emit_cuda(fitted);
  return std::pair{std::move(fitted), std::move(other)};
}

Source emit_cuda(const Program& program) { return emit_cuda_together({program})[0]; }

std::vector<Source> emit_cuda_together(const std::vector<Program>& programs) {
  std::vector<Source> sources(programs.size());
  Functions functions;
  for (size_t p = 0; p < programs.size(); p++) {
    const std::string suffix = programs.size() > 1 ? str("_p", p) : "";
    const std::vector<LibraryCall> calls = library_kernels(programs[p]);
    for (size_t k = 0; k < calls.size(); k++)
      sources[p].kernels.push_back(
          functions.add(programs[p], programs[p].kernels[k], calls[k], suffix));
  }
  const std::string kernels = functions.text();
  const std::string body =
      hide_minus_zero(cuda_helpers_for(kernels) + scan_helpers(programs) + kernels);
  const std::string text =
      str("// ", programs.empty() ? "nothing" : programs[0].name,
          ": generated by tiny_compile\n", kHead, prelude_for(body, true), body);
  for (Source& source : sources) source.text = text;
  return sources;
}

}  // namespace tiny_compile
