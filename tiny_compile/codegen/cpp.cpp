// How does a Program become text that g++ makes fast? One function a kernel, plain loops, the
// innermost over contiguous memory, no headers, only the math that is used.
//
//   kernel exp_1 rows(i0: 64) { store y1[i0] = exp(load x[i0]) }
// =>
//   extern "C" void exp_1(void* const* buffers, long long begin, long long end) {
//     const float* __restrict in_x = (const float*)buffers[0];
//     float* __restrict out_y1 = (float*)buffers[1];
//     for (long long i0 = begin; i0 < end; i0++) {
//       const float load_0 = in_x[i0];
//       const float exp_1 = tc_exp(load_0);
//       out_y1[i0] = exp_1;
//     }
//   }
#include "tiny_compile/codegen/cpp.h"

#include <algorithm>

#include "tiny_compile/codegen/cpp_errors.h"
#include "tiny_compile/codegen/cpp_kernel.h"
#include "tiny_compile/codegen/cpp_matmul.h"
#include "tiny_compile/codegen/cpp_store.h"
#include "tiny_compile/codegen/cpp_tiles.h"
#include "tiny_compile/codegen/cpp_trees.h"
#include "tiny_compile/codegen/cpp_turned.h"
#include "tiny_compile/codegen/functions.h"
#include "tiny_compile/codegen/prelude.h"
#include "tiny_compile/codegen/sort.h"
#include "tiny_compile/codegen/updates.h"
#include "tiny_compile/tile/rows.h"
#include "tiny_compile/tile/sized.h"

namespace tiny_compile {
namespace {

constexpr const char* kHead =
    R"(#define TC_FN static inline __attribute__((always_inline, unused))
#define TC_FAIL(code) tc_fail(code)
)";

// Row after row is sorted.
void write_sorts(KernelText& text) {
  const std::vector<bool> defined = text.define_constants();
  text.out.open("for (long long row = begin; row < end; row++)");
  text.unpack_rows("row");
  for (const Step& step : text.kernel.steps) {
    std::vector<bool> here = defined;
    text.define(text.needed({&step}), {row_mask(text.kernel), true}, here);
    write_sort_row(text, step, text.own(), here);
  }
  text.out.close();
}

// The body of a kernel that is no tile; what it says of itself, goes into `entry`.
KernelEntry write_family(KernelText& text, KernelEntry entry) {
  const Kernel& kernel = text.kernel;
  if (row_count(kernel).is_constant(0)) return entry;  // does nothing
  if (schedule_of(kernel).strategy == Strategy::Tiles) {
    write_matmul(text, entry);
  } else {
    require_sort(kernel);
    entry.own_bytes = sort_bytes(kernel, kernel.steps[0]);
    write_sorts(text);
  }
  return entry;
}

Functions::Written write_kernel(const LoneKernel& given, const std::optional<Tile>& tile,
                                const std::string& function) {
  const SizeNames names = size_names(sizes(given.program));
  const LoneKernel lone = {substitute(given.program, names.there), given.buffers};
  const std::optional<Tile> own =
      tile ? std::optional(substitute(*tile, names.there)) : std::nullopt;
  const Kernel kernel = own ? own->kernel : lone.kernel();
  KernelText text(lone.program, kernel);
  KernelEntry entry;
  entry.function = function;
  entry.units = own ? own->units : row_count(kernel);
  entry.grain = own ? own->grain : grain_of(lone.kernel());
  entry.at_once = own ? own->together : 1;
  for (size_t b = 0; b < lone.buffers.size(); b++) entry.buffers.push_back(static_cast<int>(b));
  text.begin_function(entry.function);
  if (own)
    write_cpp_tile(text, *own);
  else
    entry = write_family(text, std::move(entry));
  if (text.calls.has("tc_stream")) text.out.line("tc_stream_done();");
  text.out.close();
  entry.units = substitute(entry.units, names.back);
  entry.grain = substitute(entry.grain, names.back);
  entry.own_bytes = substitute(entry.own_bytes, names.back);
  for (const Expr& size : text.sizes) entry.sizes.push_back(substitute(size, names.back));
  return {entry, text.out.str(), text.calls};
}

KernelEntry add_kernel(Functions& functions, const Tiles& tiles, size_t number,
                       const std::string& suffix) {
  const Kernel& kernel = tiles.program.kernels[number];
  const LoneKernel lone = lone_kernel(tiles.program, kernel);
  std::optional<Tile> tile;
  if (tiles.of_kernel[number]) tile = lone_tile(tiles.program, *tiles.of_kernel[number], lone);
  return functions.add(lone, kernel, suffix, 0, tile,
                       [&](const LoneKernel& own, const std::string& function) {
                         return write_kernel(own, tile, function);
                       });
}

}  // namespace

Source emit_cpp(const Tiles& tiles) { return emit_cpp_together({tiles})[0]; }

std::vector<Source> emit_cpp_together(const std::vector<Tiles>& all) {
  std::vector<Source> sources(all.size());
  std::vector<Program> programs;
  Functions functions;
  for (size_t p = 0; p < all.size(); p++) {
    programs.push_back(all[p].program);
    const std::string suffix = all.size() > 1 ? str("_p", p) : "";
    for (size_t k = 0; k < programs[p].kernels.size(); k++)
      sources[p].kernels.push_back(add_kernel(functions, all[p], k, suffix));
  }
  const std::vector<std::string> units = units_of(functions.texts());
  Calls calls = functions.calls();
  const int64_t vector = programs[0].machine.vector;
  const std::string body =
      update_helpers(calls) + sort_helpers(programs, calls) + reduction_helpers(calls) +
      matmul_helpers(functions.distinct(), calls) + store_helpers(calls, vector) +
      turned_helpers(calls, vector) + joined_units(units);
  const std::string text =
      str("// ", programs[0].name, ": generated by tiny_compile\n", kHead,
          units.size() > 1 ? kErrorsOfUnits : kErrors, prelude_for(calls, false), body);
  for (Source& source : sources)
    source.text = text, source.calls = calls, source.units = static_cast<int>(units.size());
  return sources;
}

}  // namespace tiny_compile
