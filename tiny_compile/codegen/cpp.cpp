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

#include "tiny_compile/codegen/cpp_columns.h"
#include "tiny_compile/codegen/cpp_errors.h"
#include "tiny_compile/codegen/cpp_kernel.h"
#include "tiny_compile/codegen/cpp_matmul.h"
#include "tiny_compile/codegen/cpp_reduce.h"
#include "tiny_compile/codegen/cpp_scatter.h"
#include "tiny_compile/codegen/cpp_store.h"
#include "tiny_compile/codegen/cpp_tiles.h"
#include "tiny_compile/codegen/cpp_trees.h"
#include "tiny_compile/codegen/cpp_turned.h"
#include "tiny_compile/codegen/functions.h"
#include "tiny_compile/codegen/prelude.h"
#include "tiny_compile/codegen/scan.h"
#include "tiny_compile/codegen/sort.h"
#include "tiny_compile/loops/ends_of_rows.h"
#include "tiny_compile/tile/rows.h"
#include "tiny_compile/tile/sized.h"

namespace tiny_compile {
namespace {

constexpr const char* kHead =
    R"(#define TC_FN static inline __attribute__((always_inline, unused))
#define TC_FAIL(code) tc_fail(code)
)";

// Steps s, s+1, ... that are stores over the same inner loops share one nest.
size_t end_of_stores(const Kernel& kernel, size_t step) {
  size_t end = step;
  while (end < kernel.steps.size() && kernel.steps[end].kind == StepKind::Store &&
         kernel.steps[end].inner == kernel.steps[step].inner)
    end++;
  return end;
}

// for (j0..) for (j1..) { scalars; body }, each scalar as far out as it can be.
template <typename Body>
void write_nest(KernelText& text, const std::vector<int>& inner, const std::vector<int>& ids,
                std::vector<bool> defined, Body body) {
  LoopScope scope{row_mask(text.kernel), true};
  text.define(ids, scope, defined);
  for (size_t k = 0; k < inner.size(); k++) {
    text.open_loop(inner[k]);
    scope.axes |= uint64_t{1} << inner[k];
    text.define(ids, scope, defined);
  }
  text.keep(ids);
  body();
  for (size_t k = 0; k < inner.size(); k++) text.out.close();
  text.mark_kept(ids);
}

// The same for stores, whose innermost loop is write_store_loop's.
void write_stores(KernelText& text, size_t first, size_t end, std::vector<bool>& row_defined) {
  std::vector<const Step*> steps;
  for (size_t s = first; s < end; s++) steps.push_back(&text.kernel.steps[s]);
  const std::vector<int> ids = text.needed(steps), inner = steps[0]->inner;
  LoopScope scope{row_mask(text.kernel), true};
  text.define(ids, scope, row_defined);
  if (inner.empty()) {
    for (const Step* step : steps) write_store(text, *step);
    return;
  }
  std::vector<bool> defined = row_defined;
  for (size_t k = 0; k + 1 < inner.size(); k++) {
    text.open_loop(inner[k]);
    scope.axes |= uint64_t{1} << inner[k];
    text.define(ids, scope, defined);
  }
  write_store_loop(text, inner.back(), "0", c_text(text.kernel.axes[inner.back()].extent),
                   steps, [&] {
                     text.define(ids, element_scope(text.kernel, inner), defined);
                     text.keep(ids);
                   });
  for (size_t k = 0; k + 1 < inner.size(); k++) text.out.close();
  text.mark_kept(ids);
}

// One element at a time; cpp_matmul has the fast way.
void write_dot(KernelText& text, const Step& step, size_t number,
               const std::vector<bool>& defined) {
  const DType dtype = text.kernel.scalars[step.value].dtype;
  const bool narrow = is_integer(dtype) && size_of(dtype) < 4;
  const DType sum = narrow ? DType::i32 : compute_type(dtype);
  // A narrow integer's sum is an int; its register has the type that its readers expect.
  const std::string reg = str("r", number), total = narrow ? str("sum_", number) : reg;
  text.out.line(
      str(c_type(sum), " ", total, " = ", literal_text(text.calls, Literal::of(sum, 0)), ";"));
  write_nest(text, step.inner, text.needed({&step}), defined, [&] {
    const std::string a = text.scalars.name(step.value), b = text.scalars.name(step.other);
    const std::string wide = narrow ? "(int)" : "";
    text.out.line(
        is_float(dtype)
            ? str(total, " = ", text.calls("tc_fma"), "(", a, ", ", b, ", ", total, ");")
            : str(total, " = ", text.calls("tc_add"), "(", total, ", ", text.calls("tc_mul"),
                  "(", wide, a, ", ", wide, b, "));"));
  });
  if (is_float(dtype))
    text.out.line(str(reg, " = ", rounded(text.calls, dtype, reg + " + 0"), ";"));
  if (narrow)
    text.out.line(
        str("const ", c_type(dtype), " ", reg, " = (", c_type(dtype), ")", total, ";"));
}

void write_scatter(KernelText& text, const Step& step, const std::vector<bool>& defined) {
  if (has_chunks(text.kernel, step)) return write_scatter_chunks(text, step, -1, defined);
  write_nest(text, step.inner, text.needed({&step}), defined, [&] {
    const std::string mask = step.mask < 0 ? "" : text.scalars.name(step.mask) + " && ";
    text.out.open(str("if (", mask, text.calls("tc_in_range"), "(",
                      text.scalars.name(step.other), ", ", c_text(step.limit), "))"));
    text.out.line(
        updated(text.calls, step, place_of(text, step), text.scalars.name(step.value)));
    text.out.close();
  });
}

void write_steps(KernelText& text, std::vector<bool> defined) {
  const std::vector<Step>& steps = text.kernel.steps;
  for (size_t s = 0; s < steps.size();) {
    const std::vector<int> ids = text.needed({&steps[s]});
    text.define(ids, {row_mask(text.kernel), true}, defined);
    switch (steps[s].kind) {
      case StepKind::Store: {
        const size_t end = end_of_stores(text.kernel, s);
        write_stores(text, s, end, defined);
        s = end;
        continue;
      }
      case StepKind::Reduce:
        if (is_scan(steps[s])) {
          text.out.line(str(value_type(steps[s].dtype), " r", s, ";"));
          write_scan_row(text, steps[s], static_cast<int>(s), "", defined);
        } else {
          write_reduction(text, steps[s], static_cast<int>(s), defined);
        }
        break;
      case StepKind::Dot: write_dot(text, steps[s], s, defined); break;
      case StepKind::Fold:
        fail("kernel ", text.kernel.name, " folds rows, which the C++ back end does not: fuse ",
             "makes folds for Target::Cuda alone");
      case StepKind::Scan:
        write_scan_row(text, steps[s], static_cast<int>(s), place_of(text, steps[s]), defined);
        break;
      case StepKind::Sort: write_sort_row(text, steps[s], text.own(), defined); break;
      case StepKind::Scatter: write_scatter(text, steps[s], defined); break;
    }
    s++;
  }
}

// Row after row; registers are scalars of the row.
void write_rows(KernelText& text) {
  text.choose_kept();
  text.declare_kept();
  const std::vector<bool> defined = text.define_constants();
  text.out.open("for (long long row = begin; row < end; row++)");
  text.unpack_rows("row");
  write_steps(text, defined);
  text.out.close();
}

// The body of a kernel that is no tile; what it says of itself, goes into `entry`.
KernelEntry write_family(KernelText& text, KernelEntry entry) {
  const Kernel& kernel = text.kernel;
  switch (schedule_of(kernel).strategy) {
    case Strategy::Layouts:
    case Strategy::Library: CHECK(false, "layouts and the library are for cuda"); break;
    case Strategy::Tiles: write_matmul(text, entry); break;
    case Strategy::Columns:
      if (chooses_by_column(text))
        write_rows(text);
      else
        write_columns(text, entry);
      break;
    case Strategy::Pointwise: write_rows(text); break;  // of which nobody made a tile
    case Strategy::Rows:
      if (kernel.steps[0].kind == StepKind::Sort)
        entry.own_bytes = sort_bytes(kernel, kernel.steps[0]);
      write_rows(text);
      break;
  }
  return entry;
}

Functions::Written write_kernel(const LoneKernel& given, const std::optional<Tile>& tile,
                                const std::string& function) {
  const SizeNames names = size_names(sizes(given.program));
  const LoneKernel lone = {substitute(given.program, names.there), given.buffers};
  const std::optional<Tile> own =
      tile ? std::optional(substitute(*tile, names.there)) : std::nullopt;
  const bool in_rows = schedule_of(lone.kernel()).strategy == Strategy::Rows;
  const Kernel kernel = own       ? own->kernel
                        : in_rows ? with_ends_of_rows(lone.kernel())
                                  : lone.kernel();
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
      (calls.has("tc_in_range") ? kInRange : "") + scan_helpers(programs, calls) +
      sort_helpers(programs, calls) + scatter_helpers(programs) + reduction_helpers(calls) +
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
