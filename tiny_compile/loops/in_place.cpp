// May a kernel write a buffer over another that it reads? If nobody reads that one later, and no
// point of the kernel overwrites what another point still wants:
//
//   kernel k rows(i0: 8) {
//     r0: f32 = max(j0: 64) load a[i0*64 + j0]
//     store b[i0*64 + j0] for (j0: 64) = sub(load a[i0*64 + j0], r0)
//   }
// =>
//   temp b: f32[8,64] over a
//
// A row reads of `a` what it writes of `b` and nothing else; it knows r0 only when it has read all
// of it (all threads that have it, where they meet for r0); and each point of the store reads the one element
// that it overwrites, if any. A program
// says so with `over`, the verifier asks the same questions, and printers have one pointer.
#include "tiny_compile/loops/in_place.h"

#include <algorithm>
#include <map>
#include <set>

#include "tiny_compile/graph/scan.h"
#include "tiny_compile/loops/laid_out.h"
#include "tiny_compile/loops/lives.h"

namespace tiny_compile {
namespace {

std::set<int> loaded_by(const Kernel& kernel, const Step& step) {
  const std::vector<bool> used = reachable(kernel, step);
  std::set<int> buffers;
  for (size_t id = 0; id < used.size(); id++) {
    const Scalar& s = kernel.scalars[id];
    if (used[id] && s.kind == ScalarKind::Load) buffers.insert(s.buffer);
  }
  return buffers;
}

bool loads(const Kernel& kernel, const Step& step, int buffer) {
  return loaded_by(kernel, step).count(buffer) > 0;
}

// The index of a step's loads as the other step's loops would say it.
Expr in_loops_of(const Kernel& kernel, const Step& step, const Step& other, const Expr& index) {
  Substitution names;
  for (size_t k = 0; k < step.inner.size(); k++) {
    const Axis &from = kernel.axes[step.inner[k]], &to = kernel.axes[other.inner[k]];
    if (from.name != to.name) names.push_back({from.symbol().symbol(), to.symbol()});
  }
  return names.empty() ? index : substitute(index, names);
}

bool same_loops(const Kernel& kernel, const Step& a, const Step& b) {
  return std::equal(
      a.inner.begin(), a.inner.end(), b.inner.begin(), b.inner.end(),
      [&](int x, int y) { return kernel.axes[x].extent == kernel.axes[y].extent; });
}

// Whether all that the step loads of the buffer lies where the store writes at the same point.
bool reads_in_place(const Kernel& kernel, const Step& step, const Step& store, int buffer) {
  const std::vector<bool> used = reachable(kernel, step);
  for (size_t id = 0; id < used.size(); id++) {
    const Scalar& s = kernel.scalars[id];
    if (!used[id] || s.kind != ScalarKind::Load || s.buffer != buffer) continue;
    if (!is_plain(s) || !same_loops(kernel, step, store) ||
        in_loops_of(kernel, step, store, s.index) != store.index)
      return false;
  }
  return true;
}

int last_register_of(const Kernel& kernel, const Step& step) {
  const std::vector<bool> used = reachable(kernel, step);
  int last = -1;
  for (size_t id = 0; id < used.size(); id++) {
    if (used[id] && kernel.scalars[id].kind == ScalarKind::Register)
      last = std::max(last, kernel.scalars[id].step);
  }
  return last;
}

// The one step that writes the buffer, or -1.
int store_of(const Kernel& kernel, int buffer) {
  int found = -1;
  for (size_t s = 0; s < kernel.steps.size(); s++) {
    const Step& step = kernel.steps[s];
    if (makes_register(step) || step.buffer != buffer) continue;
    if (step.kind != StepKind::Store || found >= 0) return -1;
    found = static_cast<int>(s);
  }
  return found;
}

bool multiplies(const Kernel& kernel) {
  return std::any_of(kernel.steps.begin(), kernel.steps.end(),
                     [](const Step& step) { return step.kind == StepKind::Dot; });
}

bool is_run_of_stores(const Kernel& kernel, int first, int last) {
  for (int s = first; s <= last; s++) {
    if (kernel.steps[s].kind != StepKind::Store ||
        kernel.steps[s].inner != kernel.steps[last].inner)
      return false;
  }
  return true;
}

// Whether all threads that have a row wait for each other at the reduction: blocks of a cluster where all have
// parts of its loops, a block at a barrier where warps have, a warp where lanes have, whatever lanes and warps
// have none and do what others do.
bool all_meet(const Kernel& kernel, const Schedule& schedule, const Step& step) {
  if (step.kind != StepKind::Reduce || step.inner.empty()) return false;
  const Layout loop = layout_over(kernel, step.inner);
  const auto of_rows = [&](Level level) { return bits_taken(schedule.rows, level); };
  const bool one_warp = of_rows(Level::Warp) == warps_of(schedule) - 1,
             one_lane = of_rows(Level::Lane) == 31;
  return extent_of(loop, Level::Cluster) == cluster_of(schedule) &&
         (bits_taken(loop, Level::Warp) > 0 ||
          (one_warp && (one_lane || bits_taken(loop, Level::Lane) > 0)));
}

// Whether threads that share a row read in a step what another's store writes, which knows a register of a
// step that they may not have come to.
bool may_part(const Program& program, const Kernel& kernel, int read, int known) {
  const auto parts = [&](const Schedule& schedule) {
    Kernel own = kernel;
    own.schedule = schedule;
    const auto meet = [&](const Step& step) { return all_meet(own, schedule, step); };
    return schedule.strategy == Strategy::Layouts &&
           std::none_of(kernel.steps.begin() + read, kernel.steps.begin() + known + 1, meet);
  };
  return program.target == Target::Cuda &&
         ((kernel.schedule && parts(*kernel.schedule)) ||
          std::any_of(kernel.sized.begin(), kernel.sized.end(),
                      [&](const SizedSchedule& one) { return parts(one.schedule); }));
}

// Of a kernel that reads `from` and writes `to`, which may be one already: "" where it may write
// it over `from`.
std::string why_not_in(const Program& program, const Kernel& kernel, int from, int to) {
  if (program.matmul != Matmul::Generated && multiplies(kernel))
    return "may be a call of the library";
  const int number = store_of(kernel, to);
  if (number < 0) return "does not write it by one store";
  const std::vector<int> written = stored_buffers(kernel);
  if (from != to && std::binary_search(written.begin(), written.end(), from))
    return "writes both";
  const Step& store = kernel.steps[number];
  const int known = last_register_of(kernel, store);
  for (int s = 0; s < static_cast<int>(kernel.steps.size()); s++) {
    const Step& step = kernel.steps[s];
    if (!loads(kernel, step, from)) continue;
    if (s > number) return "reads it again after the store";
    if (step.kind != StepKind::Store && step.kind != StepKind::Reduce)
      return "reads it in another step than a store or a reduction";
    if (!reads_in_place(kernel, step, store, from))
      return "reads other elements of it than the point writes";
    if (is_run_of_stores(kernel, s, number)) continue;
    if (s > known) return "may still read it when the store begins";
    if (may_part(program, kernel, s, known))
      return "has other threads of a row that may still read it when the store begins";
  }
  return "";
}

// The kernel with a buffer's store after those beside it that read the other buffer.
Kernel with_store_last(const Kernel& kernel, int from, int to) {
  const int number = store_of(kernel, to);
  int last = number;
  for (int s = number + 1; number >= 0 && s < static_cast<int>(kernel.steps.size()); s++) {
    if (!is_run_of_stores(kernel, number, s)) break;
    if (loads(kernel, kernel.steps[s], from)) last = s;
  }
  if (last == number) return kernel;
  Kernel moved = kernel;
  const auto begin = moved.steps.begin();
  std::rotate(begin + number, begin + number + 1, begin + last + 1);
  return normalize(std::move(moved));
}

bool may_share(const Buffer& from, const Buffer& to) {
  const bool roles = to.role == Role::Output
                         ? from.role == Role::Input && from.donated
                         : to.role == Role::Temporary && from.role == to.role;
  return roles && from.type.dtype == to.type.dtype && from.size == to.size &&
         from.strides.empty() && from.offset.is_constant(0);
}

class Uses {
 public:
  explicit Uses(const Program& program) : life_of_(program.buffers.size()) {
    for (const Life& life : lives(program)) life_of_[life.buffer] = life;
  }
  const Life& operator[](int buffer) const { return life_of_[buffer]; }

  // The kernels of a launch that use either buffer.
  std::vector<int> users(const Program& program, int launch, int a, int b) const {
    std::vector<int> found;
    for (int id : program.launches[launch]) {
      for (const auto& used :
           {loaded_buffers(program.kernels[id]), stored_buffers(program.kernels[id])}) {
        const bool uses = std::binary_search(used.begin(), used.end(), a) ||
                          std::binary_search(used.begin(), used.end(), b);
        if (uses && (found.empty() || found.back() != id)) found.push_back(id);
      }
    }
    return found;
  }

 private:
  std::vector<Life> life_of_;
};

std::string why_not(const Program& program, const Uses& uses, int from, int to) {
  const Buffer &a = program.buffers[from], &b = program.buffers[to];
  if (!may_share(a, b))
    return "only an output may be over a donated input, and a temporary over another, of the "
           "same dtype and size";
  if (std::count(program.outputs.begin(), program.outputs.end(), from))
    return str(a.name, " is returned");
  const Life &old = uses[from], &mine = uses[to];
  if (mine.buffer < 0) return str(b.name, " is not used");
  if (old.last < mine.first) return "";
  if (old.last > mine.first) return str(a.name, " is used after ", b.name, " is written");
  const std::vector<int> users = uses.users(program, old.last, from, to);
  if (users.size() != 1) return str("two kernels of one launch use ", a.name, " or ", b.name);
  const Kernel& kernel = program.kernels[users[0]];
  const std::string reason = why_not_in(program, kernel, from, to);
  return reason.empty() ? "" : str("kernel ", kernel.name, " ", reason);
}

class Chooser {
 public:
  explicit Chooser(Program program)
      : program_(std::move(program)), uses_(program_), taken_(program_.buffers.size()) {}

  Program run() {
    for (Buffer& buffer : program_.buffers) buffer.over = -1;
    for (const Life& life : lives(program_)) {
      if (program_.buffers[life.buffer].role != Role::Input) choose(life);
    }
    return std::move(program_);
  }

 private:
  void choose(const Life& life) {
    const int to = life.buffer;
    for (const int from : candidates(life)) {
      if (taken_[from] || !may_share(program_.buffers[from], program_.buffers[to])) continue;
      if (!fits(from, life)) continue;
      program_.buffers[to].over = from;
      taken_[from] = true;
      return;
    }
  }

  // What the kernel that writes the buffer reads: first what its store itself reads and few other
  // steps do, so that p' takes p and leaves m to m'. For an output any donated input.
  std::vector<int> candidates(const Life& life) const {
    std::vector<int> found;
    for (int id : program_.launches[life.first]) {
      const Kernel& kernel = program_.kernels[id];
      const int store = store_of(kernel, life.buffer);
      if (store < 0) continue;
      found = loaded_buffers(kernel);
      std::map<int, std::pair<bool, int>>
          rank;  // whether its store does not read it; how many do
      for (const int buffer : found) rank[buffer].first = true;
      for (size_t s = 0; s < kernel.steps.size(); s++) {
        for (const int buffer : loaded_by(kernel, kernel.steps[s])) {
          rank[buffer].second++;
          if (static_cast<int>(s) == store) rank[buffer].first = false;
        }
      }
      std::stable_sort(found.begin(), found.end(),
                       [&](int a, int b) { return rank[a] < rank[b]; });
    }
    if (program_.buffers[life.buffer].role != Role::Output) return found;
    for (size_t b = 0; b < program_.buffers.size(); b++) {
      if (program_.buffers[b].donated) found.push_back(static_cast<int>(b));
    }
    return found;
  }

  bool fits(int from, const Life& life) {
    if (why_not(program_, uses_, from, life.buffer).empty()) return true;
    if (uses_[from].last != life.first) return false;
    for (int id : program_.launches[life.first]) {
      if (store_of(program_.kernels[id], life.buffer) < 0) continue;
      Kernel moved = with_store_last(program_.kernels[id], from, life.buffer);
      std::swap(moved, program_.kernels[id]);
      if (why_not(program_, uses_, from, life.buffer).empty() && keeps_its_word(id))
        return true;
      std::swap(moved, program_.kernels[id]);
    }
    return false;
  }

  // Whether what the kernel was to write over others still may.
  bool keeps_its_word(int kernel) const {
    for (const int to : stored_buffers(program_.kernels[kernel])) {
      const int from = program_.buffers[to].over;
      if (from >= 0 && !why_not(program_, uses_, from, to).empty()) return false;
    }
    return true;
  }

  Program program_;
  Uses uses_;
  std::vector<bool> taken_;
};

}  // namespace

bool loads_what_it_stores(const Program& program, const Kernel& kernel) {
  const std::vector<bool> read = buffers_read(program, kernel),
                          written = buffers_written(program, kernel);
  for (size_t b = 0; b < read.size(); b++) {
    if (read[b] && written[b]) return true;
  }
  return false;
}

int storage_of(const Program& program, int buffer) {
  while (program.buffers[buffer].over >= 0) buffer = program.buffers[buffer].over;
  return buffer;
}

bool overwrites_in_place(const Program& program, const Kernel& kernel) {
  const std::vector<int> written = stored_buffers(kernel), read = loaded_buffers(kernel);
  return std::all_of(written.begin(), written.end(), [&](int buffer) {
    return !std::binary_search(read.begin(), read.end(), buffer) ||
           why_not_in(program, kernel, buffer, buffer).empty();
  });
}

bool is_cooperative(const Program& program, const Kernel& kernel) {
  for (const Step& step : kernel.steps) {
    if (!makes_register(step) && step.kind != StepKind::Store) return false;
    if (step.kind == StepKind::Dot ||
        (step.kind == StepKind::Reduce && has_running_results(step.op)))
      return false;
  }
  return overwrites_in_place(program, kernel);
}

Program overwrite_in_place(Program program) { return Chooser(std::move(program)).run(); }

std::pair<int, std::string> why_not_over(const Program& program) {
  const auto is_over = [](const Buffer& buffer) { return buffer.over >= 0; };
  if (std::none_of(program.buffers.begin(), program.buffers.end(), is_over)) return {-1, ""};
  const Uses uses(program);
  const int count = static_cast<int>(program.buffers.size());
  std::vector<int> taker(program.buffers.size(), -1);
  for (int to = 0; to < count; to++) {
    const int from = program.buffers[to].over;
    if (from < 0) continue;
    if (from >= count) return {to, "is over a buffer that is not there"};
    if (taker[from] >= 0)
      return {to, str("is over ", program.buffers[from].name, ", and so is ",
                      program.buffers[taker[from]].name)};
    taker[from] = to;
    const std::string reason = why_not(program, uses, from, to);
    if (!reason.empty())
      return {to, str("cannot be over ", program.buffers[from].name, ": ", reason)};
    if (program.buffers[to].place != program.buffers[from].place)
      return {to, str("is over ", program.buffers[from].name, ", but at another place")};
  }
  return {-1, ""};
}

}  // namespace tiny_compile
