// Must a kernel write what it has made of an array, for one that could read the array as well?
// Fusion computes no reduction again, and cannot merge kernels that a third one lies between. But
// of a reduction only its result is needed, which is small:
//
//   rows(i: R) { r0 = sum(j: C) exp(load x[i*C + j])
//                store t[i*C + j] for (j: C) = sub(load x[i*C + j], log(r0)) }
//   rows(i: R, k: C) { store y[i*C + k] = mul(load t[i*C + k], load s[i]) }
// =>
//   rows(i: R) { r0 = sum(j: C) exp(load x[i*C + j]) ; store v[i] = log(r0) }
//   rows(i: R, k: C) { store y[i*C + k] = mul(sub(load x[i*C + k], load v[i]), load s[i]) }
//
// That is what a cross entropy's gradient is made of: its logits are read twice and written once. And
// what no reduction is part of, as x*y, was written because many kernels were to read it; those that
// fusion has left may read x and y.
#include "tiny_compile/loops/read_again.h"

#include <algorithm>
#include <map>
#include <set>

#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/bytes_moved.h"
#include "tiny_compile/loops/clone_with_mapping.h"
#include "tiny_compile/loops/dead.h"
#include "tiny_compile/loops/group.h"
#include "tiny_compile/loops/grouped.h"
#include "tiny_compile/loops/inline.h"
#include "tiny_compile/loops/lives.h"
#include "tiny_compile/loops/split.h"
#include "tiny_compile/loops/sweeps.h"
#include "tiny_compile/loops/work.h"

namespace tiny_compile {
namespace {

constexpr int64_t kLongRow = 1024, kRowBesideMemory = 256;  // elements: see long_row
constexpr int64_t kAccess = 8;  // of an access of 16 bytes at most: halves
// Work that a GPU has to spare for each byte that it need not move, half of it a CPU. (H200: six instructions take as
// long as a byte.)
constexpr double kWorkOfByte = 2;

// Of a kernel's scalars: which a stored value needs when one value a row is read from memory.
struct Formula {
  std::vector<bool> kept;      // computed by whoever needs the value
  std::vector<int> published;  // the values of a row, made of reductions
  std::map<int, int> stored;   // those that a step stores at the same place, and the step
};

bool any_operand(const Scalar& scalar, const std::vector<bool>& is) {
  return (scalar.mask >= 0 && is[scalar.mask]) ||
         std::any_of(scalar.operands.begin(), scalar.operands.end(),
                     [&](int operand) { return is[operand]; });
}

// By scalar, the other steps that keep it where `store` keeps its value: softmax(x) beside softmax(x) - 1.
std::map<int, int> stored_beside(const Program& program, const Kernel& kernel,
                                 const Step& store) {
  std::map<int, int> stored;
  const auto writes_of = [&](int buffer) {  // a scatter may follow
    return std::count_if(kernel.steps.begin(), kernel.steps.end(),
                         [&](const Step& step) { return step.buffer == buffer; });
  };
  for (size_t s = 0; s < kernel.steps.size(); s++) {
    const Step& step = kernel.steps[s];
    if (step.kind == StepKind::Store && step.buffer != store.buffer && step.rhs < 0 &&
        step.mask < 0 && writes_of(step.buffer) == 1 && step.inner == store.inner &&
        step.index == store.index && step.value != store.value &&
        step.dtype == kernel.scalars[step.value].dtype &&
        program.buffers[step.buffer].size == program.buffers[store.buffer].size)
      stored.emplace(step.value, static_cast<int>(s));
  }
  return stored;
}

Formula formula_of(const Program& program, const Kernel& kernel, const Step& store) {
  const size_t count = kernel.scalars.size();
  const std::map<int, int> beside = stored_beside(program, kernel, store);
  std::vector<bool> varies(count), reduced(count);
  for (size_t id = 0; id < count; id++) {
    const Scalar& scalar = kernel.scalars[id];
    const auto along = [&](int axis) {
      return depends_on(scalar.index, kernel.axes[axis].symbol().symbol());
    };
    varies[id] = any_operand(scalar, varies) ||
                 std::any_of(store.inner.begin(), store.inner.end(), along);
    reduced[id] = scalar.kind == ScalarKind::Register || any_operand(scalar, reduced);
  }
  Formula formula{std::vector<bool>(count), {}, {}};
  std::vector<bool> wanted(count);
  wanted[store.value] = true;
  for (size_t id = count; id-- > 0;) {
    if (!wanted[id]) continue;
    if (const auto at = beside.find(static_cast<int>(id)); at != beside.end()) {
      formula.stored.insert(*at);
      continue;
    }
    if (reduced[id] && !varies[id]) {
      formula.published.push_back(static_cast<int>(id));
      continue;
    }
    formula.kept[id] = true;
    const Scalar& scalar = kernel.scalars[id];
    for (const int operand : scalar.operands) wanted[operand] = true;
    if (scalar.mask >= 0) wanted[scalar.mask] = true;
  }
  return formula;
}

int64_t bytes_of(const Buffer& buffer) {
  return buffer.size.bounds().high * size_of(buffer.type.dtype);
}

// A result, who writes it and who reads it.
struct Candidate {
  int kernel = -1, step = -1;
  std::vector<int> readers;
  bool is_alone = false;  // all that its kernel does
};

// Whether its loops go through the buffer in even steps of whole rows, so many elements each: then a row's
// number is what the loops count.
bool goes_by_rows(const Kernel& kernel, const Step& reduction, int buffer, int64_t length) {
  const std::vector<bool> reached = reachable(kernel, reduction);
  for (size_t id = 0; id < kernel.scalars.size(); id++) {
    const Scalar& load = kernel.scalars[id];
    if (!reached[id] || load.kind != ScalarKind::Load || load.buffer != buffer) continue;
    int64_t expected = coefficient(load.index, kernel.axes[reduction.inner.back()].symbol());
    if (expected == 0 || expected % length != 0) return false;
    for (size_t k = reduction.inner.size(); k-- > 0;) {
      const Axis& axis = kernel.axes[reduction.inner[k]];
      if (!axis.extent.is_constant() || coefficient(load.index, axis.symbol()) != expected)
        return false;
      expected *= axis.extent.constant();
    }
  }
  return true;
}

// A row of so many elements takes longer than to find its number. A GPU divides for each element while it
// waits for memory, but not for its cache. (H200: a sum over all log-probabilities, f32[65536,1001] .20 ms
// and .15, [2048,1001] .018 and .019.)
int64_t long_row(const Program& program, int buffer) {
  const bool waits =
      program.target == Target::Cuda && bytes_of(program.buffers[buffer]) > program.machine.l2;
  return waits ? kRowBesideMemory : kLongRow;
}

// Whether finding the row of an element costs little beside the elements of the row: those of the innermost
// loops that are one in memory, up to `most`.
bool has_long_rows(const Kernel& kernel, const Step& reduction, int64_t most, int64_t enough) {
  std::vector<int> run;
  Expr length = 1;
  for (size_t k = reduction.inner.size(); k-- > 0 && length.bounds().high < most;) {
    run.insert(run.begin(), reduction.inner[k]);
    if (!step_as_one(kernel, run)) break;
    length = length * kernel.axes[run.front()].extent;
  }
  return length.is_constant() &&
         (length.constant() >= enough || length.constant() % kAccess == 0);
}

// Whether its steps store, or reduce rows whose number is cheap to find: over several loops it takes a division to find
// the row of each (split.h), or of each access where rows are whole ones, or none where the loops are one in memory, of
// which chunks are rows of a kernel (split.h). `length`: elements of a row.
bool finds_rows(const Program& program, const Kernel& reader, int buffer, int64_t length) {
  return std::all_of(reader.steps.begin(), reader.steps.end(), [&](const Step& step) {
    return step.kind == StepKind::Store ||
           (step.kind == StepKind::Reduce && !step.inner.empty() &&
            (step.inner.size() == 1 ||
             has_long_rows(reader, step, length, long_row(program, buffer)) ||
             (goes_by_rows(reader, step, buffer, length) && can_split(program, reader))));
  });
}

// How often the buffer's elements are asked for by a step.
int64_t asked_by(const Kernel& reader, const Step& step, int buffer) {
  if (!reads(reader, step, buffer)) return 0;
  return (row_count(reader) * inner_count(reader, step)).bounds().high;
}

// A kernel that would compute an element more than once does not: there the array is worth its bytes. A reduction
// reads each element once where no other step does.
bool reads_each_once(const Program& program, const Kernel& reader, int buffer) {
  const int64_t size = program.buffers[buffer].size.bounds().high;
  const auto all = std::count_if(reader.steps.begin(), reader.steps.end(),
                                 [&](const Step& step) { return reads(reader, step, buffer); });
  return (all == 1 || !Group(reader).sequential()) &&
         std::none_of(reader.steps.begin(), reader.steps.end(), [&](const Step& step) {
           return asked_by(reader, step, buffer) > size + size / kBorder;
         });
}

// All that a kernel asks for, in parts of the buffer: steps of a sweep ask together. `read` is what memory must
// give for that: an element that a sweep asks for many times is in a cache.
struct Sweeps {
  double times = 0, read = 0;
};

Sweeps sweeps_over(const Program& program, const Kernel& reader, int buffer) {
  const double size = static_cast<double>(program.buffers[buffer].size.bounds().high);
  Sweeps all;
  for (const std::vector<int>& sweep : gathered_sweeps_of(reader)) {
    int64_t most = 0;
    for (const int step : sweep)
      most = std::max(most, asked_by(reader, reader.steps[step], buffer));
    const double part = static_cast<double>(most) / size;
    all.times += part;
    all.read += std::min(part, 1.0);
  }
  return all;
}

// By buffer, the kernels that read it and those that write it.
struct Uses {
  std::vector<std::set<int>> readers, writers;

  explicit Uses(const Program& program)
      : readers(program.buffers.size()), writers(program.buffers.size()) {
    for (size_t k = 0; k < program.kernels.size(); k++) add(program, static_cast<int>(k));
  }

  void add(const Program& program, int number) {
    readers.resize(program.buffers.size());
    writers.resize(program.buffers.size());
    const Kernel& kernel = program.kernels[number];
    for (const int buffer : loaded_buffers(kernel)) readers[buffer].insert(number);
    for (const int buffer : stored_buffers(kernel)) writers[buffer].insert(number);
  }
  void remove(const Program& program, int number) {
    const Kernel& kernel = program.kernels[number];
    for (const int buffer : loaded_buffers(kernel)) readers[buffer].erase(number);
    for (const int buffer : stored_buffers(kernel)) writers[buffer].erase(number);
  }
};

std::optional<Candidate> candidate_of(const Program& program, const Uses& uses, int buffer) {
  const std::set<int>&readers = uses.readers[buffer], &writers = uses.writers[buffer];
  if (program.buffers[buffer].role != Role::Temporary || readers.empty() ||
      writers.size() != 1 || readers.count(*writers.begin()))
    return {};
  const int writer = *writers.begin();
  const Kernel& kernel = program.kernels[writer];
  const int step = Group(kernel).store_to(buffer);
  const bool is_given =
      is_scheduled(kernel) || std::any_of(readers.begin(), readers.end(), [&](int reader) {
        return is_scheduled(program.kernels[reader]);
      });
  if (step < 0 || is_given) return {};
  const int64_t length = inner_count(kernel, kernel.steps[step]).bounds().high;
  const bool is_alone = kernel.steps.size() == 1;
  const bool fits = std::all_of(readers.begin(), readers.end(), [&](int number) {
    const Kernel& reader = program.kernels[number];
    return finds_rows(program, reader, buffer, is_alone ? kLongRow : length) &&
           (is_alone || reads_each_once(program, reader, buffer));
  });
  const bool again = chooses(kernel, kernel.steps[step]) &&
                     std::any_of(readers.begin(), readers.end(), [&](int reader) {
                       return Group(program.kernels[reader]).sequential();
                     });
  if (!fits || again) return {};
  return Candidate{writer, step, {readers.begin(), readers.end()}, is_alone};
}

// What a kernel reads, or another than the writer over axes alike: those two may become one.
std::set<int> known_to(const Program& program, int reader, int writer) {
  const auto extents = [](const Kernel& kernel) {
    std::vector<Expr> all;
    for (const Axis& axis : kernel.axes) all.push_back(axis.extent);
    return all;
  };
  const Kernel& kernel = program.kernels[reader];
  std::set<int> known;
  for (size_t k = 0; k < program.kernels.size(); k++) {
    const Kernel& other = program.kernels[k];
    if (static_cast<int>(k) == writer || other.rows != kernel.rows ||
        extents(other) != extents(kernel))
      continue;
    const std::vector<int> read = loaded_buffers(other);
    known.insert(read.begin(), read.end());
  }
  return known;
}

// What the formula reads beside what a reader knows.
int64_t bytes_added(const Program& program, const Candidate& found, const Formula& formula,
                    int reader) {
  const Kernel& kernel = program.kernels[found.kernel];
  const std::set<int> known = known_to(program, reader, found.kernel);
  std::vector<bool> added = formula.kept;
  for (size_t id = 0; id < added.size(); id++)
    added[id] = added[id] && known.count(kernel.scalars[id].buffer) == 0;
  int64_t bytes = bytes_read(program, kernel, added);
  for (const auto& [id, step] : formula.stored) {
    const int buffer = kernel.steps[step].buffer;
    if (known.count(buffer) == 0) bytes += bytes_of(program.buffers[buffer]);
  }
  return bytes;
}

bool moves_less(const Program& program, const Candidate& found, int buffer,
                const Formula& formula) {
  const Kernel& kernel = program.kernels[found.kernel];
  const int64_t rows = row_count(kernel).bounds().high,
                size = bytes_of(program.buffers[buffer]),
                readers = static_cast<int64_t>(found.readers.size());
  int64_t moved = 0;
  for (const int id : formula.published)
    moved += rows * size_of(kernel.scalars[id].dtype) * (1 + readers);
  for (const int reader : found.readers) moved += bytes_added(program, found, formula, reader);
  const bool is_cheap = formula.stored.empty() || cost(kernel, formula.kept) <= kCheapOps;
  return moved < size * (1 + readers) && is_cheap;
}

// The same of what is all that its kernel does, where each sweep of a reader counts, and work that is done again. Where
// it is asked for once, fusion kept it for other reasons.
bool moves_less_alone(const Program& program, const Candidate& found, int buffer,
                      const Formula& formula) {
  const Kernel& kernel = program.kernels[found.kernel];
  const bool on_gpu = program.target == Target::Cuda;
  const double size = static_cast<double>(bytes_of(program.buffers[buffer])),
               elements = static_cast<double>(program.buffers[buffer].size.bounds().high),
               work = cost(kernel, formula.kept,
                           on_gpu ? made_of_indices(kernel) : std::vector<bool>());
  double before = static_cast<double>(bytes_read(program, kernel, formula.kept)) + size,
         moved = 0, times = 0;
  for (const int reader : found.readers) {
    const Sweeps asked = sweeps_over(program, program.kernels[reader], buffer);
    const bool is_sequential = Group(program.kernels[reader]).sequential();
    if (!is_sequential && asked.times > 1 + 1.0 / kBorder) return false;  // a point's work
    moved += asked.read * static_cast<double>(bytes_added(program, found, formula, reader));
    before += asked.read * size;
    times += asked.times;
  }
  const double again = (times - 1) * elements * work,
               spare = on_gpu ? kWorkOfByte : kWorkOfByte / 2;
  return times > 1 + 1.0 / kBorder && moved < before && again <= spare * (before - moved);
}

// Whether what the formula reads lies side by side where the array does: else its readers would go across
// it, an access an element.
bool lies_alike(const Kernel& kernel, const Step& store, const Formula& formula) {
  for (const int axis : store.inner.empty() ? row_axes(kernel) : store.inner) {
    const Expr symbol = kernel.axes[axis].symbol();
    if (coefficient(store.index, symbol) != 1) continue;
    for (size_t id = 0; id < kernel.scalars.size(); id++) {
      const Scalar& load = kernel.scalars[id];
      if (formula.kept[id] && load.kind == ScalarKind::Load &&
          depends_on(load.index, symbol.symbol()) &&
          std::abs(coefficient(load.index, symbol)) > kAccess)
        return false;
    }
  }
  return true;
}

// The store alone, its values of a row read from `places`.
Kernel formula_alone(const Program& program, const Kernel& kernel, const Step& store,
                     const Formula& formula, const std::vector<int>& places) {
  Kernel alone = without_steps(kernel);
  ScalarTable table(alone);
  std::vector<int> ids(kernel.scalars.size(), -1);
  for (size_t k = 0; k < places.size(); k++)
    ids[formula.published[k]] = table.load(program, places[k], flat_row(kernel));
  for (const auto& [id, step] : formula.stored)
    ids[id] = table.load(program, kernel.steps[step].buffer, store.index);
  for (size_t id = 0; id < ids.size(); id++) {
    if (!formula.kept[id]) continue;
    ids[id] = table.add(renumbered(
        kernel.scalars[id], [&](int operand) { return ids[operand]; },
        [](int step) { return step; }));
  }
  Step step = store;
  step.value = ids[store.value];
  alone.steps = {step};
  return alone;
}

// The kernel with a store for each of the row's values in place of the array's, if there are any.
// Steps that make registers keep their numbers.
Kernel publishing(const Program& program, Kernel kernel, int replaced, const Formula& formula,
                  const std::vector<int>& places) {
  if (places.empty()) {
    std::vector<bool> loaded(program.buffers.size(), true);
    loaded[kernel.steps[replaced].buffer] = false;
    return without_repeats(without_dead_stores(program, std::move(kernel), loaded));
  }
  for (size_t k = 0; k < places.size(); k++) {
    Step store;
    store.buffer = places[k];
    store.index = flat_row(kernel);
    store.value = formula.published[k];
    store.dtype = kernel.scalars[store.value].dtype;
    if (k == 0) kernel.steps[replaced] = store;
    if (k > 0) kernel.steps.push_back(store);
  }
  return without_repeats(Group(kernel).finish());
}

// Whether it divides, or reductions will when they are taken apart, for more places than before.
bool divides_more(const Kernel& made, const Kernel& before) {
  const auto divided = [](const Kernel& kernel) {
    return std::count_if(kernel.scalars.begin(), kernel.scalars.end(),
                         [](const Scalar& scalar) { return divides(scalar.index); });
  };
  const auto will_divide = [](const Kernel& kernel) {
    return std::count_if(kernel.steps.begin(), kernel.steps.end(), [&](const Step& step) {
      return step.kind == StepKind::Reduce && step.inner.size() > 1 &&
             !has_long_rows(kernel, step, kLongRow, kLongRow);
    });
  };
  return divided(made) > divided(before) || will_divide(made) > will_divide(before);
}

// The kernels that change, by number, beside buffers that are added to the program; nothing, and the program
// as it was, where a reader cannot compute the array, or would divide for the place of each element.
std::map<int, Kernel> without_array(Program& program, const Candidate& found, int buffer,
                                    const Formula& formula) {
  const auto before = static_cast<std::ptrdiff_t>(program.buffers.size());
  const Kernel& kernel = program.kernels[found.kernel];
  std::vector<int> places;
  for (const int id : formula.published)
    places.push_back(add_temporary(program, "v", kernel.name,
                                   {kernel.scalars[id].dtype, {row_count(kernel)}},
                                   row_count(kernel)));
  const Group alone(formula_alone(program, kernel, kernel.steps[found.step], formula, places));
  std::map<int, Kernel> changed;
  for (const int reader : found.readers) {
    Group computing(program.kernels[reader]);
    const bool is_known = inline_at_any_cost(program, computing, alone, buffer).empty();
    Kernel made = without_repeats(computing.finish());
    if (!is_known || (found.is_alone && divides_more(made, program.kernels[reader]))) {
      program.buffers.erase(program.buffers.begin() + before, program.buffers.end());
      return {};
    }
    changed.emplace(reader, std::move(made));
  }
  changed.emplace(found.kernel, publishing(program, kernel, found.step, formula, places));
  for (auto& [number, one] : changed) one.name = program.kernels[number].name;
  return changed;
}

// Kernels that have nothing left to do go.
Program without_idle_kernels(Program program) {
  if (std::erase_if(program.kernels, [](const Kernel& k) { return k.steps.empty(); }) == 0)
    return program;
  program.launches.clear();
  for (size_t k = 0; k < program.kernels.size(); k++)
    program.launches.push_back({static_cast<int>(k)});
  return program;
}

}  // namespace

Program read_again(Program program) {
  const int count = static_cast<int>(program.buffers.size());
  Uses uses(program);
  for (int buffer = 0; buffer < count; buffer++) {
    const std::optional<Candidate> found = candidate_of(program, uses, buffer);
    if (!found) continue;
    const Kernel& kernel = program.kernels[found->kernel];
    const Formula formula = formula_of(program, kernel, kernel.steps[found->step]);
    const bool less = found->is_alone ? moves_less_alone(program, *found, buffer, formula)
                                      : moves_less(program, *found, buffer, formula);
    if (!less || !lies_alike(kernel, kernel.steps[found->step], formula)) continue;
    for (auto& [number, one] : without_array(program, *found, buffer, formula)) {
      uses.remove(program, number);
      program.kernels[number] = std::move(one);
      uses.add(program, number);
    }
  }
  return without_idle_kernels(drop_unused_buffers(with_one_of_each(std::move(program))));
}

}  // namespace tiny_compile
