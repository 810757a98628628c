// How does a row become sorted in C? Its keys are read once, each beside its place; runs of 16 are
// sorted by insertion, then merged in pairs:
//
//   sort y[i0*100 + j0] for (j0: 100) = argsort load x[i0*100 + j0]
// =>
//   for (int e = 0; e < 100; e++) items[e] = {in_x[i0*100 + e], e};
//   items = tc_sort<false>(items, other, 100);
//   for (int e = 0; e < 100; e++) out_y[i0*100 + e] = items[e].place;
//
// A merge takes from the right where that stands before the left, so equals stay in order. Where few
// places are wanted, the rest of the row is inserted into the first of them. (CUDA: cuda_sort.)
#include "tiny_compile/codegen/sort.h"

#include <algorithm>
#include <set>

#include "tiny_compile/codegen/cuda_bitonic.h"
#include "tiny_compile/loops/sort_rules.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostInserted = 32;  // into more, merging all is as fast

constexpr const char* kRows = R"(
template <class T, class I>
struct tc_sorted {
  T key;
  I place;
};

// Whether a stands before b, wherever they are; NaN is greater than all.
template <bool Down, class T>
TC_FN bool tc_before(T a, T b) {
  return Down ? a > b || (a != a && b == b) : a < b || (b != b && a == a);
}

// One after the other takes its place among the sorted ones in front of it, of which `most` are kept.
template <bool Down, class Item>
static Item* tc_insert(Item* items, long long count, long long most) {
  for (long long k = 1; k < count; k++) {
    const Item item = items[k];
    long long at = k < most ? k : most;
    if (at == most && !tc_before<Down>(item.key, items[--at].key)) continue;
    for (; at > 0 && tc_before<Down>(item.key, items[at - 1].key); at--) items[at] = items[at - 1];
    items[at] = item;
  }
  return items;
}

// Where the sorted items are: in one of the two, which it uses in turns.
template <bool Down, class Item>
static Item* tc_sort(Item* from, Item* to, long long count) {
  for (long long k = 0; k < count; k += 16)
    tc_insert<Down>(from + k, count - k < 16 ? count - k : 16, 16);
  for (long long width = 16; width < count; width *= 2) {
    for (long long begin = 0; begin < count; begin += 2 * width) {
      const long long middle = begin + width < count ? begin + width : count;
      const long long end = middle + width < count ? middle + width : count;
      long long left = begin, right = middle;
      for (long long k = begin; k < end; k++) {
        const bool takes_right =
            left == middle ||
            (right < end && tc_before<Down>(from[right].key, from[left].key));
        to[k] = takes_right ? from[right++] : from[left++];
      }
    }
    Item* const sorted = to;
    to = from;
    from = sorted;
  }
  return from;
}
)";

}  // namespace

SortText::SortText(const Kernel& kernel, const Step& step)
    : key(value_type(kernel.scalars[step.value].dtype)),
      down(step.op == Op::argsort_descending ? "true" : "false"),
      count(inner_count(kernel, step).bounds().high),
      run(sorted_run(kernel, step).bounds().high) {
  item = str("tc_sorted<", key, ", ", run <= INT32_MAX ? "int" : "long long", ">");
}

void require_sort(const Kernel& kernel) {
  if (kernel.steps[0].kind == StepKind::Sort) return;
  fail("kernel ", kernel.name, " folds rows, which only a GPU's layouts do, not schedule ",
       name_of(schedule_of(kernel).strategy));
}

std::string sort_helpers(const std::vector<Program>& programs, Calls& calls) {
  std::set<DType> keys;
  for (const Program& program : programs) {
    for (const Kernel& kernel : program.kernels) {
      for (const Step& step : kernel.steps) {
        if (step.kind == StepKind::Sort)
          keys.insert(compute_type(kernel.scalars[step.value].dtype));
      }
    }
  }
  if (keys.empty()) return "";
  return calls.cuda ? bitonic_helpers(keys, calls) : kRows;
}

Expr sort_bytes(const Kernel& kernel, const Step& step) {
  const SortText sort(kernel, step);
  return sorted_run(kernel, step) * 4 *
         std::max<int64_t>(size_of(compute_type(kernel.scalars[step.value].dtype)),
                           sort.run <= INT32_MAX ? 4 : 8);
}

void write_sort_row(KernelText& text, const Step& step, const std::string& own,
                    const std::vector<bool>& row_defined) {
  const SortText sort(text.kernel, step);
  Step keys = step, places = step;
  keys.other = keys.mask = -1;  // sorting anew is as good as merging
  places.value = places.other = places.mask = -1;
  Text& out = text.out;
  const Expr elements = inner_count(text.kernel, step);
  const std::string run = c_operand(sorted_run(text.kernel, step)), count = c_operand(elements),
                    index = text.scalars.index(step.index);
  out.line(str(sort.item, "* const own = (", sort.item, "*)", own, ";"));
  out.open(str("for (long long from = 0; from < ", count, "; from += ", run, ")"));
  out.line(str("const long long length = ", count, " - from < ", run, " ? ", count,
               " - from : ", run, ";"));
  out.open("for (long long k = 0; k < length; k++)");
  std::vector<bool> defined = row_defined;
  text.declare("e", "from + k");
  text.unpack_inner(step, "e");
  text.define(text.needed({&keys}), element_scope(text.kernel, step.inner), defined);
  out.line(str("own[k] = {", text.scalars.name(step.value), ", (decltype(own->place))k};"));
  out.close();
  const int64_t first = first_places(text.kernel, step);
  out.line(str("const ", sort.item, "* const items = ",
               first > 0 && first <= std::min(kMostInserted, sort.run - 1)
                   ? str("tc_insert<", sort.down, ">(own, length, ", first, ");")
                   : str("tc_sort<", sort.down, ">(own, own + ", run, ", length);")));
  const std::string wanted = first >= sort.count              ? "length"
                             : first <= elements.bounds().low ? str(first)
                                                              : str("length && k < ", first);
  out.open(str("for (long long k = 0; k < ", wanted, "; k++)"));
  text.declare("e", "from + k");
  text.unpack_inner(step, "e");
  out.line(str(pointer_name(text.program.buffers[step.buffer]), "[", index,
               "] = from + items[k].place;"));
  out.close();
  out.close();
}

}  // namespace tiny_compile
