// How do a Program and its tiles become CUDA C? A tile as it stands; then the helpers and the part of the prelude that
// it calls are put before it. A matmul that is the library's is a line that says so.
#include "tiny_compile/codegen/cuda.h"

#include <algorithm>

#include "tiny_compile/codegen/cuda_group.h"
#include "tiny_compile/codegen/cuda_helpers.h"
#include "tiny_compile/codegen/cuda_tile.h"
#include "tiny_compile/codegen/functions.h"
#include "tiny_compile/codegen/prelude.h"
#include "tiny_compile/loops/counted.h"
#include "tiny_compile/loops/group_launches.h"
#include "tiny_compile/loops/in_place.h"
#include "tiny_compile/loops/library_sums.h"
#include "tiny_compile/tile/packs.h"
#include "tiny_compile/tile/sized.h"

namespace tiny_compile {
namespace {

constexpr const char* kHead = R"(#define TC_FN static __device__ inline
#define TC_FAIL(code) atomicOr(&tc_errors.bits, code)
#define TC_BAD_INDEX(i, limit) \
  if (!(TC_FAIL(1u) & 1u)) tc_errors.index = i, tc_errors.size = limit
struct tc_found {
  unsigned bits;
  long long index, size;
};
__device__ tc_found tc_errors;
)";

// Bytes of kernels in a unit of those that are compiled side by side.
constexpr size_t kUnit = 8 << 10;

// One launch behind a call's kernels, which is recorded with them: the call's place is no argument. (H200: .5 us of a
// recording; a copy and a fill, until 2026-11-25, took longer.)
constexpr const char* kHandOver = R"(
__device__ unsigned tc_calls;

// Behind a call: what its kernels found goes to the next of the host's places, and is cleared.
extern "C" __global__ void tc_hand_over(volatile tc_found* places, unsigned count) {
  if (!tc_has_waited()) return;
  volatile tc_found* const place = places + tc_calls++ % count;
  const unsigned bits = tc_errors.bits;
  if (bits != 0) {
    place->index = tc_errors.index;
    place->size = tc_errors.size;
    tc_errors.bits = 0;
  }
  place->bits = bits;
}
)";

// Modules share no memory: kernels that can fail are all in the first, which has the word for it.
std::vector<std::string> cuda_units(const Functions& functions) {
  const std::string failing = join(functions.texts(true), "");
  std::vector<std::string> units = units_of(functions.texts(), kUnit);
  if (failing.empty()) return units;
  if (units.size() > 1) {
    units = {failing};
    if (const std::vector<std::string> rest = functions.texts(false); !rest.empty()) {
      const std::vector<std::string> others = units_of(rest, kUnit);
      units.insert(units.end(), others.begin(), others.end());
    }
  }
  units[0] += kHandOver;
  return units;
}

// How a kernel is started: `room` is 0 where it is by itself.
struct Form {
  bool lets_next = false;
  int room = 0;
  bool counted = false;
  Starts starts() const {
    return counted ? Starts::Counted : room ? Starts::Block : Starts::Kernel;
  }
};

Functions::Written finished(CudaText& text, KernelEntry entry, int room) {
  if (room) write_cuda_group(text, entry, room);
  return {entry, text.out.str(), text.calls};
}

// Of symbolic sizes, which the entry has by their own names.
Functions::Written finished(CudaText& text, KernelEntry entry, const SizeNames& names) {
  entry.grid = substitute(entry.grid, names.back);
  for (Expr& size : entry.sizes) size = substitute(size, names.back);
  return finished(text, std::move(entry), 0);
}

Functions::Written write_sized_tile(const LoneKernel& lone, const Tile& tile,
                                    const std::string& function, const Form& form) {
  const SizeNames names = size_names(sizes(lone.program));
  const Tile own = substitute(tile, names.there);
  Program program = substitute_in_buffers(lone.program, names.there);
  program.kernels = {own.kernel};
  CudaText text(program, own.kernel);
  text.lets_next = form.lets_next;
  return finished(text, write_cuda_tile(text, own, function), names);
}

Functions::Written write_tile(const LoneKernel& lone, const Tile& tile,
                              const std::string& function, const Form& form) {
  if (!sizes(lone.program).empty()) return write_sized_tile(lone, tile, function, form);
  CudaText text(lone.program, tile.kernel, form.starts());
  text.lets_next = form.lets_next;
  return finished(text, write_cuda_tile(text, tile, function), form.room);
}

// The library's call as a line, and the entry that makes it.
KernelEntry add_call(Functions& functions, const Program& program, const Kernel& kernel,
                     const LibraryCall& call, const std::string& suffix) {
  std::string line = comment_of(kernel) + "// the library: " + str(*call.matmul) + "\n";
  if (call.sums >= 0)
    line += str("// or without sums, which ", function_name(program.kernels[call.sums]), suffix,
                " makes then\n");
  functions.add_comment(line);
  KernelEntry entry;
  entry.function = function_name(kernel) + suffix;
  entry.grid = 0;
  entry.library = call.matmul;
  entry.sums = call.sums;
  return entry;
}

// The function of all kernels of its work, and what one start of it does of this one.
KernelEntry add_function(Functions& functions, const Program& program, const Kernel& kernel,
                         const std::optional<Tile>& given, Form form,
                         const std::string& suffix) {
  if (!given) fail_without_tile(kernel);
  LoneKernel lone = lone_kernel(program, kernel);
  std::optional<Tile> tile = lone_tile(program, *given, lone), any;
  if (form.room > 0 && is_counted(kernel)) any = for_any_count(lone, *tile);
  form.counted = any.has_value();
  if (any) lone = for_any_count(std::move(lone)), tile = any;
  const auto write = [&](const LoneKernel& own, const std::string& function) {
    return write_tile(own, *tile, function, form);
  };
  KernelEntry entry = functions.add(lone, kernel, suffix, form.room, tile, write);
  if (!form.counted) return entry;
  entry.points = row_count(kernel).constant();
  entry.grid = for_count(*any, entry.points).grid;
  return entry;
}

// One function for each of its schedules.
KernelEntry add_sized(Functions& functions, const Tiles& tiles, size_t number, const Form& form,
                      const std::string& suffix) {
  const std::vector<SizedSchedule>& sized = tiles.program.kernels[number].sized;
  const auto add = [&](int n) {
    const Scheduled one = scheduled(tiles, number, n);
    Kernel kernel = one.program.kernels[one.kernel];
    kernel.sized.clear();
    return add_function(functions, one.program, kernel, one.tile, form, suffix);
  };
  KernelEntry entry = add(-1);
  for (size_t n = 0; n < sized.size(); n++) {
    entry.sized.push_back(add(static_cast<int>(n)));
    entry.sized.back().when = sized[n].when;
  }
  return entry;
}

KernelEntry add_kernel(Functions& functions, const Tiles& tiles, size_t number,
                       const LibraryCall& call, const Form& form, const std::string& suffix) {
  const Kernel& kernel = tiles.program.kernels[number];
  if (!kernel.sized.empty()) return add_sized(functions, tiles, number, form, suffix);
  if (!row_count(kernel).is_constant(0))
    return call.matmul ? add_call(functions, tiles.program, kernel, call, suffix)
                       : add_function(functions, tiles.program, kernel, tiles.of_kernel[number],
                                      form, suffix);
  KernelEntry entry;
  entry.function = function_name(kernel) + suffix;
  entry.grid = 0;
  return entry;
}

// Whether something is started while its kernels run: what hands over what they found, or one of them.
bool starts_early(const Program& program) {
  const auto starts = [](const SizedSchedule& one) { return is_early(one.schedule); };
  return std::any_of(program.kernels.begin(), program.kernels.end(), [&](const Kernel& kernel) {
    return can_fail(kernel) || is_early(schedule_of(kernel)) ||
           std::any_of(kernel.sized.begin(), kernel.sized.end(), starts);
  });
}

}  // namespace

Source emit_cuda(const Tiles& tiles) { return emit_cuda_together({tiles})[0]; }

std::vector<Source> emit_cuda_together(const std::vector<Tiles>& all) {
  std::vector<Program> programs;
  for (const Tiles& tiles : all) programs.push_back(tiles.program);
  std::vector<Source> sources(programs.size());
  Functions functions;
  const bool lets_next = std::any_of(programs.begin(), programs.end(), starts_early);
  for (size_t p = 0; p < programs.size(); p++) {
    const std::string suffix = programs.size() > 1 ? str("_p", p) : "";
    const std::vector<LibraryCall> calls = library_kernels(programs[p]);
    const std::vector<int> rooms = rooms_of(programs[p]);
    for (size_t k = 0; k < calls.size(); k++)
      sources[p].kernels.push_back(
          add_kernel(functions, all[p], k, calls[k], {lets_next, rooms[k]}, suffix));
  }
  const std::vector<std::string> units = cuda_units(functions);
  Calls calls = functions.calls();
  if (!functions.texts(true).empty()) calls("tc_has_waited");  // what hands over
  const std::string body = cuda_helpers_for(calls) + joined_units(units);
  const std::string text =
      str("// ", programs.empty() ? "nothing" : programs[0].name,
          ": generated by tiny_compile\n", kHead, prelude_for(calls, true), body);
  for (Source& source : sources)
    source.text = text, source.calls = calls, source.units = static_cast<int>(units.size());
  return sources;
}

}  // namespace tiny_compile
