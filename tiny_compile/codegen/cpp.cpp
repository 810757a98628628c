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
#include "tiny_compile/codegen/cpp_kernel.h"
#include "tiny_compile/codegen/cpp_matmul.h"
#include "tiny_compile/codegen/cpp_points.h"
#include "tiny_compile/codegen/cpp_reduce.h"
#include "tiny_compile/codegen/cpp_scatter.h"
#include "tiny_compile/codegen/cpp_store.h"
#include "tiny_compile/codegen/cpp_trees.h"
#include "tiny_compile/codegen/cpp_turned.h"
#include "tiny_compile/codegen/functions.h"
#include "tiny_compile/codegen/prelude.h"
#include "tiny_compile/codegen/scan.h"
#include "tiny_compile/codegen/sort.h"
#include "tiny_compile/loops/ends_of_rows.h"

namespace tiny_compile {
namespace {

// Bytes of kernels in a unit: a third of a second of g++, which takes 0.05 s for an empty one.
constexpr size_t kUnit = 16 << 10;

constexpr int64_t kWorkAlone = 1 << 13;  // elements, some us, that one thread does alone

constexpr const char* kHead =
    R"(#define TC_FN static inline __attribute__((always_inline, unused))
#define TC_FAIL(code) tc_fail(code)
)";

// Errors are a thread's own, so that calls side by side keep theirs; tc_fail stays a call
// because the address of such a word, computed in a gather's loop, doubles the loop's time.
constexpr const char* kErrors =
    R"(static __thread unsigned tc_error_word = 0;
static void tc_fail(unsigned) __attribute__((noinline, cold, unused));
static void tc_fail(unsigned code) { tc_error_word |= code; }
extern "C" unsigned tc_take_errors() {
  const unsigned bits = tc_error_word;
  tc_error_word = 0;
  return bits;
}
)";

// The same for units that are compiled side by side: the first has the word.
constexpr const char* kErrorsOfUnits =
    R"(__attribute__((cold, visibility("hidden"))) void tc_fail(unsigned);
#if !defined(TC_UNIT) || TC_UNIT == 0
static __thread unsigned tc_error_word = 0;
__attribute__((noinline)) void tc_fail(unsigned code) { tc_error_word |= code; }
extern "C" unsigned tc_take_errors() {
  const unsigned bits = tc_error_word;
  tc_error_word = 0;
  return bits;
}
#endif
)";

constexpr const char* kInRange = R"(
static inline bool tc_in_range(long long index, long long limit) {
  if ((unsigned long long)index < (unsigned long long)limit) return true;
  TC_FAIL(1u);
  return false;
}
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

// The schedule's. Rows whose length is a size may be shorter than those that it is for: then so many
// that a thread is worth asking.
Expr grain_of(const Kernel& kernel) {
  const Schedule schedule = schedule_of(kernel);
  Expr work = 0;
  for (const Step& step : kernel.steps) work = work + inner_count(kernel, step);
  if (work.is_constant()) return std::max<int64_t>(schedule.grain, 1);
  if (schedule.strategy == Strategy::Columns) work = work * columns_unit(schedule);
  return max(schedule.grain, floor_div(kWorkAlone, max(work, 1)));
}

Functions::Written write_kernel(const LoneKernel& given, const std::string& function) {
  const SizeNames names = size_names(sizes(given.program));
  const LoneKernel lone = {substitute(given.program, names.there), given.buffers};
  const bool in_rows = schedule_of(lone.kernel()).strategy == Strategy::Rows;
  const Kernel kernel = in_rows ? with_ends_of_rows(lone.kernel()) : lone.kernel();
  KernelEntry entry;
  entry.function = function;
  entry.units = row_count(kernel);
  entry.grain = grain_of(lone.kernel());
  for (size_t b = 0; b < lone.buffers.size(); b++) entry.buffers.push_back(static_cast<int>(b));
  KernelText text(lone.program, kernel);
  text.begin_function(entry.function);
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
    case Strategy::Pointwise:
      if (const std::vector<int> turned = turned_loads(kernel); !turned.empty()) {
        entry.units = write_turned(text, turned);
        entry.grain = max(floor_div(entry.grain, kSquare * kSquare), 1);
      } else {
        const int64_t points = write_points(text);
        entry.grain = max(floor_div(entry.grain, points), 1);
        entry.units = floor_div(entry.units, points);
      }
      break;
    case Strategy::Rows:
      if (kernel.steps[0].kind == StepKind::Sort)
        entry.own_bytes = sort_bytes(kernel, kernel.steps[0]);
      write_rows(text);
      break;
  }
  if (text.calls.has("tc_stream")) text.out.line("tc_stream_done();");
  text.out.close();
  entry.units = substitute(entry.units, names.back);
  entry.grain = substitute(entry.grain, names.back);
  entry.own_bytes = substitute(entry.own_bytes, names.back);
  for (const Expr& size : text.sizes) entry.sizes.push_back(substitute(size, names.back));
  return {entry, text.out.str(), text.calls};
}

// Functions for one compiler each, of about equal lengths.
std::vector<std::string> units_of(const std::vector<std::string>& functions) {
  size_t total = 0, done = 0;
  for (const std::string& function : functions) total += function.size();
  std::vector<std::string> units(std::max<size_t>(total / kUnit, 1));
  for (const std::string& function : functions) {
    units[done * units.size() / std::max<size_t>(total, 1)] += function;
    done += function.size();
  }
  std::erase(units, "");
  return units.empty() ? functions : units;
}

// Each unit between an #if and an #endif where there are several.
std::string joined(const std::vector<std::string>& units) {
  if (units.size() < 2) return join(units, "");
  std::string text;
  for (size_t u = 0; u < units.size(); u++)
    text += str("\n#if !defined(TC_UNIT) || TC_UNIT == ", u, units[u], "#endif\n");
  return text;
}

}  // namespace

Source emit_cpp(const Program& program) { return emit_cpp_together({program})[0]; }

std::vector<Source> emit_cpp_together(const std::vector<Program>& programs) {
  std::vector<Source> sources(programs.size());
  Functions functions;
  for (size_t p = 0; p < programs.size(); p++) {
    const std::string suffix = programs.size() > 1 ? str("_p", p) : "";
    for (const Kernel& kernel : programs[p].kernels)
      sources[p].kernels.push_back(functions.add(programs[p], kernel, suffix, write_kernel));
  }
  const std::vector<std::string> units = units_of(functions.texts());
  Calls calls = functions.calls();
  const std::string body = (calls.has("tc_in_range") ? kInRange : "") +
                           scan_helpers(programs, calls) + sort_helpers(programs, calls) +
                           scatter_helpers(programs) +
                           reduction_helpers(functions.distinct(), calls) +
                           matmul_helpers(functions.distinct(), calls) + store_helpers(calls) +
                           turned_helpers(calls) + joined(units);
  const std::string text =
      str("// ", programs[0].name, ": generated by tiny_compile\n", kHead,
          units.size() > 1 ? kErrorsOfUnits : kErrors, prelude_for(calls, false), body);
  for (Source& source : sources)
    source.text = text, source.calls = calls, source.units = static_cast<int>(units.size());
  return sources;
}

}  // namespace tiny_compile
