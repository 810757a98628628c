// How many rows may go side by side on a CPU? As many as L2 has room for what is kept of them:
//
//   r0 = sum(j0: 4000) load x[j0*512 + i0], f32   =>   a lane has a stack of 5 partial sums, 4 chunks' results
//                                                      and its register: 40 bytes; 1024 lanes 40 kB
//
// Arrays that steps share have a name, and are as long as the longest that asks for them; the tile
// program makes the same (tile/columns.cpp), and rows.cpp checks that it does.
#include "tiny_compile/loops/strips.h"

#include <algorithm>
#include <bit>
#include <map>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/loops/scan_rules.h"
#include "tiny_compile/loops/scatter_rules.h"
#include "tiny_compile/loops/sweeps.h"

namespace tiny_compile {
namespace {

constexpr int64_t kFew = 16;     // elements of a lane that registers hold
constexpr int kMostWritten = 6;  // ops of an element that is written up to sixteen times

int64_t bytes_in_array(DType dtype) {
  return static_cast<int64_t>(size_of(compute_type(dtype)));
}

// Collects what a lane has.
class LaneArrays {
 public:
  explicit LaneArrays(const Kernel& kernel) : kernel_(kernel) {}

  void add(int number) {
    const Step& step = kernel_.steps[number];
    if (is_scan(step)) add_scan(step);
    if (step.kind == StepKind::Scatter && goes_in_chunks(kernel_, step)) add_updates(step);
    if (step.kind != StepKind::Reduce) return;
    if (!is_scan(step)) add_reduction(step);
    if (has_few_elements(kernel_, step) || is_read(number))
      apart_ += bytes_in_array(step.dtype);  // its register
  }

  StripBytes bytes() const {
    StripBytes all{apart_, besides_};
    for (const auto& [name, bytes] : shared_) all.of_lane += bytes;
    return all;
  }

 private:
  // Of the arrays `name` the longest.
  void share(const char* name, DType dtype, int64_t size) {
    int64_t& bytes = shared_[{name, dtype}];
    bytes = std::max(bytes, size * bytes_in_array(dtype));
  }

  bool is_read(int number) const {
    return std::any_of(kernel_.scalars.begin(), kernel_.scalars.end(), [&](const Scalar& s) {
      return s.kind == ScalarKind::Register && s.step == number;
    });
  }

  void add_reduction(const Step& step) {
    const DType type = accumulator(step.op, kernel_.scalars[step.value].dtype);
    if (has_few_elements(kernel_, step)) return;
    if (is_arg(step)) {
      share("best", type, 1);
      share("best_at", DType::i32, 1);
    } else if (is_float(type) && (takes_eights(kernel_, step) || !is_exact(step.op, type))) {
      add_tree(step, type);
    } else {
      share("all", type, 1);
    }
  }

  void add_tree(const Step& step, DType type) {
    const int64_t chunks = most_chunks(inner_count(kernel_, step)),
                  parts = chunks > 1 ? room_for_tree(chunks) : 0;
    share("stack", type, stack_of_lane(kernel_, step));
    share("part", type, parts);
    if (step.op != Op::sum_exp) return;
    share("most", type, 1);
    share("mosts", type, parts);
    share("largest", type, parts > 0);
  }

  // Within a group and before it, and of groups of each level.
  void add_scan(const Step& step) {
    const int64_t length = inner_count(kernel_, step).bounds().high;
    const DType type = compute_type(kernel_.scalars[step.value].dtype),
                place = length <= INT32_MAX ? DType::i32 : DType::i64;
    apart_ += (2 + 2 * scan_levels(length)) *
              (bytes_in_array(type) + (gives_places(step) ? bytes_in_array(place) : 0));
  }

  // A chunk's values, and which places they go to.
  void add_updates(const Step& step) {
    apart_ += kChunk * bytes_in_array(step.dtype);
    besides_ += kChunk * bytes_in_array(DType::i64);
  }

  const Kernel& kernel_;
  std::map<std::pair<std::string, DType>, int64_t> shared_;
  int64_t apart_ = 0, besides_ = 0;
};

}  // namespace

int64_t room_for_tree(int64_t count) {
  return count <= kChunk ? power_of_two_from(count) : ceil_divide(count, kChunk) * kChunk;
}

int64_t strips_of(int64_t count) { return std::max<int64_t>(power_of_two_from(count) / 8, 1); }

bool takes_eights(const Kernel& kernel, const Step& step) {
  if (!inner_count(kernel, step).is_constant()) return false;
  std::vector<int> roots;
  for (int root : step.roots())
    if (root >= 0) roots.push_back(root);
  const std::vector<int> wanted = evaluated_for(kernel, roots, [](int) { return false; });
  return std::count_if(wanted.begin(), wanted.end(), [&](int id) {
           return kernel.scalars[id].kind == ScalarKind::Apply;
         }) <= kMostWritten;
}

bool has_few_elements(const Kernel& kernel, const Step& step) {
  const Expr count = inner_count(kernel, step);
  return count.is_constant() && !count.is_constant(0) && count.constant() <= kFew &&
         step.op != Op::sum_exp && !is_scan(step);
}

int64_t most_chunks(const Expr& count) {
  const int64_t most = count.bounds().high;
  return count.is_constant() ? ceil_divide(most, kChunk) : most / kChunk + (most > kChunk);
}

int64_t stack_of_lane(const Kernel& kernel, const Step& step) {
  const Expr count = inner_count(kernel, step);
  const int64_t chunks = most_chunks(count), most = std::min(count.bounds().high, kChunk),
                of_chunk = takes_eights(kernel, step) ? strips_of(most) : most,
                of_parts = count.is_constant() ? strips_of(chunks) : chunks,
                all = std::max({of_chunk, of_parts, most / kChunk * strips_of(kChunk)});
  return std::bit_width(static_cast<uint64_t>(power_of_two_from(all)));
}

StripBytes strip_bytes(const Kernel& kernel) {
  LaneArrays arrays(kernel);
  for (size_t s = 0; s < kernel.steps.size(); s++) arrays.add(static_cast<int>(s));
  return arrays.bytes();
}

}  // namespace tiny_compile
