// Question: may every later stage trust this Program? Checked after each pass in tests and
// debug builds, so that a pass that breaks something is named at once.
#include "tiny_compile/loops/verify.h"

#include <algorithm>
#include <set>

#include "tiny_compile/graph/sizes.h"
#include "tiny_compile/loops/coverage.h"
#include "tiny_compile/loops/in_place.h"
#include "tiny_compile/loops/lives.h"
#include "tiny_compile/loops/program.h"
#include "tiny_compile/loops/scan_rules.h"
#include "tiny_compile/loops/verify_kernel.h"

namespace tiny_compile {
namespace {

// --- sizes and buffers ---

// A text says what a name is by the name alone, so that sizes and loops do not share one.
std::set<std::string> checked_sizes(const Program& program) {
  const Suspect who{program};
  std::set<std::string> names;
  for (const Expr& size : sizes(program)) {
    who.require(!is_loop_name(size.name()), "a size is called ", size, ", like a loop");
    who.require(names.insert(size.name()).second, "the size ", size,
                " has two different bounds");
  }
  return names;
}

// What goes with its role.
void check_role(const Program& program, int number) {
  const Buffer& b = program.buffers[number];
  const Suspect who{program, nullptr, {.buffer = number}};
  const size_t rank = b.type.shape.size();
  who.require(b.strides.empty() || (b.role == Role::Input && b.strides.size() == rank), b.name,
              ": strides are for inputs, one a dimension");
  who.require(b.align >= 1 && (b.align & (b.align - 1)) == 0, b.name, ": align=", b.align,
              " is no power of two");
  who.require(b.role == Role::Input || b.offset.is_constant(0), b.name,
              ": an offset is for inputs");
  who.require(b.role == Role::Input || !b.donated, b.name, ": what is donated is an input");
  who.require(b.place < 0 || (b.role == Role::Temporary && b.place % 64 == 0), b.name, " at ",
              b.place, ": a place is for temporaries, and a multiple of 64 bytes");
  const bool padded = b.role == Role::Temporary && !rows_of(b).count.is_constant(0);
  who.require(b.role == Role::Input || padded || b.size == product(b.type.shape), b.name,
              " has ", b.size, " elements, which its shape does not fill");
}

// Every element of the shape lies in the buffer, and an input has no others. Symbolic sizes are
// checked when they are known.
void check_reach(const Program& program, int number) {
  const Buffer& b = program.buffers[number];
  const Suspect who{program, nullptr, {.buffer = number}};
  const Shape strides = b.strides.empty() ? row_major_strides(b.type.shape) : b.strides;
  Expr low = b.offset, high = b.offset;
  for (size_t a = 0; a < strides.size(); a++) {
    if (!strides[a].is_constant() || !b.type.shape[a].is_constant()) return;
    const Expr reach = (b.type.shape[a] - 1) * strides[a];
    (strides[a].constant() < 0 ? low : high) = (strides[a].constant() < 0 ? low : high) + reach;
  }
  if (!b.size.is_constant() || !b.offset.is_constant() || product(b.type.shape).is_constant(0))
    return;
  who.require(low.constant() >= 0 && high.constant() < b.size.constant(), b.name,
              ": its shape reaches beyond its ", b.size, " elements");
  who.require(b.role != Role::Input ||
                  (low.constant() == 0 && high.constant() == b.size.constant() - 1),
              b.name, ": its shape reaches elements ", low, " to ", high, " of ", b.size,
              ", not all");
}

// --- launches ---

// The library's product, which may have sums of its result in its launch (library_sums.h).
bool may_be_library(const Program& program, const Kernel& kernel) {
  return program.matmul != Matmul::Generated &&
         std::any_of(kernel.steps.begin(), kernel.steps.end(),
                     [](const Step& step) { return step.kind == StepKind::Dot; });
}

// What the launches so far have done.
struct Progress {
  std::vector<bool> ready;  // buffers that are complete
  std::vector<int> runs;    // of each kernel
};

void check_reads(const Program& program, const std::vector<int>& launch, Progress& progress) {
  std::set<int> known;  // written in this launch
  for (int k : launch) {
    Suspect who{program};
    who.require(k >= 0 && k < static_cast<int>(progress.runs.size()), "a launch names kernel ",
                k, ", which is not there");
    progress.runs[k]++;
    who.at = {.kernel = k};
    const Kernel& kernel = program.kernels[k];
    for (int b : loaded_buffers(kernel))
      who.require(progress.ready[b] || known.count(b), "kernel ", kernel.name, " reads ",
                  program.buffers[b].name, " before it is written");
    if (k == launch[0] && may_be_library(program, kernel))
      for (int b : stored_buffers(kernel)) known.insert(b);
  }
}

void check_writes(const Program& program, const std::vector<int>& launch, Progress& progress) {
  for (int k : launch) {
    const Suspect who{program, nullptr, {.kernel = k}};
    const std::vector<int> written = stored_buffers(program.kernels[k]);
    for (int b : written)
      who.require(!progress.ready[b], "kernel ", program.kernels[k].name, " writes ",
                  program.buffers[b].name, ", which is complete");
    for (int b : written) progress.ready[b] = true;
  }
}

// Kernels run once each, after the writers of what they read; outputs are written or inputs, no
// temporaries.
void check_order(const Program& program) {
  Progress progress{std::vector<bool>(program.buffers.size()),
                    std::vector<int>(program.kernels.size())};
  for (size_t b = 0; b < program.buffers.size(); b++) {
    const Buffer& buffer = program.buffers[b];
    progress.ready[b] = buffer.role == Role::Input || buffer.size.is_constant(0);
  }
  for (const std::vector<int>& launch : program.launches) {
    check_reads(program, launch, progress);
    check_writes(program, launch, progress);
  }
  for (size_t k = 0; k < program.kernels.size(); k++) {
    const Suspect who{program, nullptr, {.kernel = static_cast<int>(k)}};
    who.require(progress.runs[k] == 1, "kernel ", program.kernels[k].name, " is launched ",
                progress.runs[k], " times");
  }
  for (int output : program.outputs) {
    const Suspect who{program, nullptr, {.buffer = output}};
    who.require(progress.ready[output], "output ", program.buffers[output].name,
                " is never written");
    who.require(program.buffers[output].role != Role::Temporary, "returns ",
                program.buffers[output].name, ", a temporary, which ends with the call");
  }
}

// --- what is written, and where ---

std::vector<Axis> loops_of(const Kernel& kernel, const Step& step) {
  const int rows = kernel.rows - (step.kind == StepKind::Fold ? 1 : 0);
  std::vector<Axis> loops(kernel.axes.begin(), kernel.axes.begin() + rows);
  for (int axis : step.inner) loops.push_back(kernel.axes[axis]);
  return loops;
}

bool writes_each_once(const Kernel& kernel, const Step& step, const Buffer& buffer) {
  WholeRows places{step.index, loops_of(kernel, step)};
  if (step.kind != StepKind::Scatter && step.mask >= 0) {
    const auto whole = whole_rows(kernel, step, places.loops);
    if (!whole) return false;
    places = *whole;
  }
  const Rows rows = rows_of(buffer);
  return is_own(rows, places.index) &&
         covers(number_in_shape(rows, places.index), places.loops, product(buffer.type.shape));
}

// The store's inner loops go over base, base + stride, ..., the places that may be chosen.
bool stores_all_places(const Kernel& kernel, const Step& store, const Step& scatter) {
  const Expr base = substitute(scatter.index, {{indirect(0), 0}}),
             stride = substitute(scatter.index, {{indirect(0), 1}}) - base,
             chosen = Expr::index(indirect(0), max(scatter.limit, 1));
  std::vector<Axis> loops;
  Substitution first;
  for (const int axis : store.inner) {
    loops.push_back(kernel.axes[axis]);
    first.push_back({kernel.axes[axis].name, 0});
  }
  if (!stride.is_constant() || stride.constant() < 1 ||
      scatter.index != base + chosen * stride || substitute(store.index, first) != base)
    return false;
  const Expr beyond = store.index - base;
  return mod(beyond, stride).is_constant(0) &&
         covers(floor_div(beyond, stride), loops, scatter.limit);
}

// store y[i0*8 + j0] for (j0: 8), then scatter y[i0*8 + at0; at0 = .. < 8].
void check_scatter(const Suspect& who, int number) {
  const Step& scatter = who.kernel->steps[number];
  bool in_own_row = false;
  for (int s = 0; s < number; s++) {
    const Step& store = who.kernel->steps[s];
    if (store.kind == StepKind::Store && store.buffer == scatter.buffer)
      in_own_row = stores_all_places(*who.kernel, store, scatter);
  }
  who.require(in_own_row, "step ", number, " scatters to ",
              who.program.buffers[scatter.buffer].name, "[", scatter.index,
              "], which is not seen to be its row's part of what a step before "
              "has stored");
}

// What is written is written everywhere, by one step, and no element by two points of it. (A
// scatter adds to what a store of its kernel has written before, each row to its own.)
void check_coverage(const Program& program) {
  std::vector<bool> written(program.buffers.size());
  for (size_t k = 0; k < program.kernels.size(); k++) {
    const Kernel& kernel = program.kernels[k];
    for (size_t s = 0; s < kernel.steps.size(); s++) {
      const Step& step = kernel.steps[s];
      const Suspect who{
          program, &kernel, {.kernel = static_cast<int>(k), .step = static_cast<int>(s)}};
      if (makes_register(step)) continue;
      if (step.kind == StepKind::Scatter) {
        check_scatter(who, static_cast<int>(s));
        continue;
      }
      const Buffer& buffer = program.buffers[step.buffer];
      who.require(!written[step.buffer], "step ", s, " writes ", buffer.name,
                  ", which another step writes");
      written[step.buffer] = true;
      who.require(writes_each_once(kernel, step, buffer), "step ", s, " stores ", buffer.name,
                  "[", step.index, "], which is not seen to write each of ",
                  product(buffer.type.shape), " elements once");
    }
  }
}

int64_t bytes(const Buffer& b) { return b.size.bounds().high * size_of(b.type.dtype); }

// Temporaries that live at the same time do not share bytes, unless one is written in place of
// another.
void check_places(const Program& program) {
  const auto [over, reason] = why_not_over(program);
  Suspect who{program, nullptr, {.buffer = over}};
  who.require(over < 0, over < 0 ? "" : program.buffers[over].name, " ", reason);
  for (const Life& life : lives(program)) {
    const Buffer& buffer = program.buffers[life.buffer];
    who.at = {.buffer = life.buffer};
    who.require(buffer.place < 0 || buffer.place + bytes(buffer) <= program.arena_bytes,
                buffer.name, " ends beyond the arena");
  }
  const auto [a, b] = find_overlap(program);
  who.at = {.buffer = b};
  who.require(a < 0, a < 0 ? "" : program.buffers[a].name, " and ",
              b < 0 ? "" : program.buffers[b].name, " share bytes while both live");
}

}  // namespace

void verify(const Program& program) {
  Suspect{program}.require(target_of(program.machine) == program.target, "its machine, ",
                           program.machine.name, ", is not its target's");
  const std::set<std::string> size_names = checked_sizes(program);
  for (int b = 0; b < static_cast<int>(program.buffers.size()); b++) {
    check_role(program, b);
    check_reach(program, b);
  }
  for (int k = 0; k < static_cast<int>(program.kernels.size()); k++)
    check_kernel(program, k, size_names);
  check_order(program);
  check_places(program);
  if (size_names.empty()) check_coverage(program);  // else where the sizes are known
}

}  // namespace tiny_compile
